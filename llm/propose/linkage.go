package propose

import (
	"regexp"
	"strings"
)

var externCRE = regexp.MustCompile(`extern[ \t]*"C"[ \t]*`)

// linkage gives kernels the linkage that the loader needs: extern "C" on GPU targets; on cpu plain C, not static.
func (p *parse) linkage(src string) string {
	if p.known.cpu() {
		if externCRE.MatchString(src) {
			p.repaired("extern_c")
			src = dropExternC(src)
		}
		if strings.Contains(src, "<cmath>") {
			p.repaired("cmath")
			src = strings.ReplaceAll(src, "<cmath>", "<math.h>")
		}
		return src
	}
	src = p.onDevice(src)
	if regexp.MustCompile(`extern[ \t]*"C"[ \t]*\{`).MatchString(src) {
		return src
	}
	list := entries(src, p.known.Target)
	for i := len(list) - 1; i >= 0; i-- {
		f := list[i]
		if f.has(`"C"`) || f.has("template") {
			continue
		}
		p.repaired("extern_c")
		src = src[:f.from] + `extern "C" ` + src[f.from:]
	}
	return src
}

// onDevice marks functions that kernels use and that lack it as device code.
func (p *parse) onDevice(src string) string {
	items := topLevel(src)
	used := p.reachable(src, items)
	for i := len(items) - 1; i >= 0; i-- {
		f := items[i]
		if f.kind == itemFunction && used[f.name] && host(f) && !f.has("template") {
			p.repaired("device_function")
			src = src[:f.from] + "__device__ " + src[f.from:]
		}
	}
	return src
}

// dropExternC removes extern "C" from a C file: before one declaration, and round a block with the block's braces.
func dropExternC(src string) string {
	for {
		at := externCRE.FindStringIndex(src)
		if at == nil {
			return src
		}
		if !strings.HasPrefix(strings.TrimLeft(src[at[1]:], "\n"), "{") {
			src = src[:at[0]] + src[at[1]:]
			continue
		}
		brace := at[1] + strings.IndexByte(src[at[1]:], '{')
		depth, closing := 0, -1
		for _, t := range lex(src[brace:]).code() {
			switch t.text {
			case "{":
				depth++
			case "}":
				depth--
			}
			if depth == 0 {
				closing = brace + t.at
				break
			}
		}
		if closing < 0 {
			return src[:at[0]] + src[brace+1:]
		}
		src = src[:at[0]] + src[brace+1:closing] + src[closing+1:]
	}
}

var hiddenRE = regexp.MustCompile(`\b(?:static|inline|__inline__|__inline)[ \t]+`)

// export makes the kernels of a C file visible to the loader.
func (p *parse) export(h *header, body string) string {
	if !p.known.cpu() {
		return body
	}
	for _, l := range h.launch {
		for _, f := range functions(body) {
			if name, _ := l[0].Value.(string); f.name != name || !(f.has("static") || f.has("inline")) {
				continue
			}
			p.repaired("static_kernel")
			open := f.from + strings.IndexByte(body[f.from:], '(')
			body = body[:f.from] + hiddenRE.ReplaceAllString(body[f.from:open], "") + body[open:]
			break
		}
	}
	return body
}
