package propose

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
)

// block is a piece of a reply that may be code.
type block struct {
	label string // of the fence, lower case
	text  string
	open  bool // the fence is never closed
}

var invisible = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\ufeff", "", "\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\u00a0", " ", "\u202f", " ", "\x00", "")

var (
	thinkRE    = regexp.MustCompile(`(?s)<(think|thinking|reasoning|scratchpad)>.*?</(think|thinking|reasoning|scratchpad)>`)
	fenceRE    = regexp.MustCompile("^([ \t]*)(```+|~~~+)[ \t]*([^`\n]*)$")
	tagRE      = regexp.MustCompile(`(?is)<(code|kernel|source|file|answer|solution|structure)(?:\s[^>]*)?>\s*(.*?)\s*</(code|kernel|source|file|answer|solution|structure)>`)
	openTagRE  = regexp.MustCompile(`(?i)^\s*<(code|kernel|source|file|pre)(?:\s[^>]*)?>\s*`)
	cdataRE    = regexp.MustCompile(`(?s)<!\[CDATA\[(.*?)\]\]>`)
	lineNoRE   = regexp.MustCompile(`^\s*(\d{1,4})(?:\s*[|:│]|\t|\s)\s?(.*)$`)
	codeLineRE = regexp.MustCompile(`^\s*(#\s*(include|define|pragma|if)|extern\b|static\b|void\b|__global__|template\s*<|typedef\b|inline\b|/\*[\s*]*ridgepoint)`)
)

// clean makes line ends and invisible characters uniform and drops thinking aloud.
func (p *parse) clean(text string) string {
	if strings.Contains(text, "\r") {
		p.repaired("crlf")
	}
	out := invisible.Replace(strings.ToValidUTF8(text, ""))
	if len(out)+strings.Count(text, "\r") < len(text) {
		p.repaired("invisible")
	}
	if t := thinkRE.ReplaceAllString(out, ""); t != out {
		out = t
		p.repaired("thinking")
	}
	for _, tag := range []string{"</think>", "</thinking>"} { // opened by the chat template, outside the reply
		if i := strings.LastIndex(out, tag); i >= 0 {
			out = out[i+len(tag):]
			p.repaired("thinking")
		}
	}
	return out
}

// blocks finds what may be code in a reply.
func (p *parse) blocks(text string) []block {
	if inner, ok := unwrapJSON(text); ok {
		p.repaired("json_wrapped")
		text = inner
	}
	if strings.Contains(text, "<![CDATA[") {
		p.repaired("cdata")
		text = cdataRE.ReplaceAllString(text, "$1")
	}
	if quoted(text) {
		p.repaired("quoted")
		text = unquote(text)
	}
	found := fenced(text)
	if len(found) == 0 {
		if m := tagRE.FindAllStringSubmatch(text, -1); len(m) > 0 {
			p.repaired("tagged")
			for _, g := range m {
				inner := g[2]
				for openTagRE.MatchString(inner) { // nested tags
					inner = openTagRE.ReplaceAllString(inner, "")
				}
				found = append(found, block{label: strings.ToLower(g[1]), text: inner})
			}
		} else if code, ok := bare(text); ok {
			p.repaired("no_fence")
			found = append(found, block{text: code})
		}
	}
	for i := range found {
		found[i].text = p.plain(found[i].text)
		if found[i].open {
			p.repaired("open_fence")
		}
	}
	return found
}

// plain undoes what editors and web pages do to code: common indentation, line numbers, HTML escapes, typographic quotes.
func (p *parse) plain(code string) string {
	if inner, ok := unwrapJSON(code); ok {
		p.repaired("json_wrapped")
		code = inner
	}
	if stripped, ok := stripLineNumbers(code); ok {
		p.repaired("line_numbers")
		code = stripped
	}
	if (strings.Contains(code, "&lt;") || strings.Contains(code, "&gt;") || strings.Contains(code, "&amp;&amp;")) && !strings.Contains(code, "include <") {
		p.repaired("html_escapes")
		code = html.UnescapeString(code)
	}
	if s := typographic.Replace(code); s != code {
		p.repaired("typographic_quotes")
		code = s
	}
	return dedent(code)
}

var typographic = strings.NewReplacer("\u201c", `"`, "\u201d", `"`, "\u2018", "'", "\u2019", "'", "\u2212", "-", "\u2013", "-", "\u00d7", "*", "\u2264", "<=", "\u2265", ">=", "\u2260", "!=")

// fenced returns the fenced blocks of a text, fences of back-ticks or tildes of any length and indentation. A fence of other kind or
// shorter length inside a block belongs to it.
func fenced(text string) []block {
	var out []block
	var mark string
	var b block
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		m := fenceRE.FindStringSubmatch(strings.TrimRight(line, " \t"))
		switch {
		case mark == "" && m != nil:
			mark, b, lines = m[2], block{label: strings.ToLower(strings.TrimSpace(m[3]))}, nil
		case mark != "" && m != nil && m[2][0] == mark[0] && len(m[2]) >= len(mark) && m[3] == "":
			b.text = strings.Join(lines, "\n")
			out, mark = append(out, b), ""
		case mark != "" && m != nil && m[2][0] == mark[0] && m[3] != "" && len(m[2]) == len(mark): // the last one was not closed
			b.text, b.open = strings.Join(lines, "\n"), true
			out = append(out, b)
			b, lines = block{label: strings.ToLower(strings.TrimSpace(m[3]))}, nil
		case mark != "":
			lines = append(lines, line)
		}
	}
	if mark != "" {
		b.text, b.open = strings.Join(lines, "\n"), true
		if t := strings.TrimRight(b.text, " \t\n"); strings.HasSuffix(t, mark) { // closed at the end of the last line of code
			b.text, b.open = strings.TrimSuffix(t, mark), false
		}
		if strings.TrimSpace(b.text) != "" {
			out = append(out, b)
		}
	}
	return out
}

// bare finds code that stands in a reply without any fence: from its first line that can only be code to its last brace.
func bare(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	first, last := -1, -1
	for i, line := range lines {
		if first < 0 && codeLineRE.MatchString(line) {
			first = i
		}
		if t := strings.TrimSpace(line); first >= 0 && (strings.HasSuffix(t, "}") || strings.HasSuffix(t, "};") || strings.HasPrefix(t, "#endif") || strings.HasSuffix(t, "*/")) {
			last = i
		}
	}
	if first < 0 || last <= first {
		return "", false
	}
	return strings.Join(lines[first:last+1], "\n"), true
}

// unwrapJSON returns the code inside a JSON string, or inside the longest string of a JSON object or list.
func unwrapJSON(text string) (string, bool) {
	t := strings.TrimSpace(text)
	if blocks := fenced(t); len(blocks) == 1 && strings.HasPrefix(t, "```") && strings.HasSuffix(t, "```") && blocks[0].label == "json" {
		t = strings.TrimSpace(blocks[0].text)
	}
	if t == "" || (t[0] != '{' && t[0] != '"' && t[0] != '[') {
		return "", false
	}
	var v any
	if json.Unmarshal([]byte(t), &v) != nil {
		return "", false
	}
	best := ""
	longest(v, &best)
	if !strings.Contains(best, "\n") || !strings.ContainsAny(best, "{;") {
		return "", false
	}
	return best, true
}

func longest(v any, best *string) {
	switch v := v.(type) {
	case string:
		if len(v) > len(*best) {
			*best = v
		}
	case map[string]any:
		for _, e := range v {
			longest(e, best)
		}
	case []any:
		for _, e := range v {
			longest(e, best)
		}
	}
}

// quoted says whether the text's code is quoted as in mail, every line after "> ".
func quoted(text string) bool {
	n, all := 0, 0
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		all++
		if strings.HasPrefix(line, ">") {
			n++
		}
	}
	return n > 4 && n*2 > all
}

func unquote(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, ">"); ok {
			lines[i] = strings.TrimPrefix(rest, " ")
		}
	}
	return strings.Join(lines, "\n")
}

// stripLineNumbers removes line numbers where every line has its own, counting up by one.
func stripLineNumbers(code string) (string, bool) {
	lines := strings.Split(strings.Trim(code, "\n"), "\n")
	if len(lines) < 4 {
		return "", false
	}
	want := ""
	for i, line := range lines {
		m := lineNoRE.FindStringSubmatch(line + " ")
		if m == nil || (want != "" && m[1] != want) {
			return "", false
		}
		want = increment(m[1])
		lines[i] = strings.TrimRight(m[2], " ")
	}
	return strings.Join(lines, "\n"), true
}

func increment(digits string) string {
	n := 0
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return itoa(n + 1)
}

// dedent removes the white space that all lines begin with.
func dedent(code string) string {
	lines := strings.Split(code, "\n")
	prefix, any := "", false
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if !any {
			prefix, any = lead, true
		}
		for !strings.HasPrefix(lead, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	if prefix == "" {
		return strings.Trim(code, "\n") + "\n"
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, prefix)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
