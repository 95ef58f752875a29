package harnesstest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	header   = regexp.MustCompile(`(?s)/\*\s*ridgepoint\b.*?\*/`)
	comments = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	strung   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	name     = regexp.MustCompile(`[A-Za-z_]\w*`)
	lexeme   = regexp.MustCompile(`[A-Za-z_]\w*|\S`)
	typeWord = regexp.MustCompile(`^(void|bool|char|short|int|long|unsigned|float|double|size_t|float[234]|__half2?|u?int(8|16|32|64)_t)$`)
	member   = regexp.MustCompile(`(?:\.|->)\s*([A-Za-z_]\w*)`)
)

// qualifiers are words that stand between a type and a name, or before a type.
var qualifiers = []string{"*", "const", "volatile", "restrict", "__restrict__", "signed", "static", "extern", "struct", "return", "sizeof", "inline", "operator", "main"}

// Disguise returns a kernel's source with its comments gone, but for Ridgepoint's header, and with the names that it declares
// replaced by ones that tell nothing. Names in keep stay: the kernels' own, which the launch plan calls, and what a library
// expects to find. Members of structures keep their names too.
func Disguise(source string, keep ...string) string {
	head := header.FindString(source)
	body := comments.ReplaceAllString(strings.Replace(source, head, "", 1), " ")
	fixed := slices.Clone(keep)
	for _, m := range member.FindAllStringSubmatch(body, -1) {
		fixed = append(fixed, m[1])
	}
	veiled := map[string]string{}
	for _, n := range declared(lexeme.FindAllString(strung.ReplaceAllString(body, `""`), -1)) {
		if _, seen := veiled[n]; !seen && !slices.Contains(fixed, n) && !strings.HasPrefix(n, "__") {
			veiled[n] = "v" + strconv.Itoa(len(veiled)) + "_q"
		}
	}
	var out strings.Builder
	out.WriteString(head + "\n")
	for _, line := range strings.SplitAfter(body, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#include") {
			out.WriteString(line)
			continue
		}
		last := 0
		for _, at := range strung.FindAllStringIndex(line, -1) {
			out.WriteString(rename(line[last:at[0]], veiled) + line[at[0]:at[1]])
			last = at[1]
		}
		out.WriteString(rename(line[last:], veiled))
	}
	return out.String()
}

// declared returns the names that follow a type, and those that follow them in the same list.
func declared(tokens []string) []string {
	var out []string
	for i, t := range tokens {
		if !typeWord.MatchString(t) {
			continue
		}
		for j := i + 1; j < len(tokens); j++ {
			for j < len(tokens) && slices.Contains(qualifiers, tokens[j]) {
				j++
			}
			if j >= len(tokens) || !name.MatchString(tokens[j]) || typeWord.MatchString(tokens[j]) {
				break
			}
			out = append(out, tokens[j])
			for depth := 0; j < len(tokens); j++ { // to the comma of the list
				if strings.Contains("([{", tokens[j]) {
					depth++
				} else if strings.Contains(")]}", tokens[j]) {
					depth--
				}
				if depth < 0 || depth == 0 && (tokens[j] == "," || tokens[j] == ";") {
					break
				}
			}
			if j >= len(tokens) || tokens[j] != "," {
				break
			}
		}
	}
	return out
}

func rename(code string, veiled map[string]string) string {
	return name.ReplaceAllStringFunc(code, func(n string) string {
		if v, ok := veiled[n]; ok {
			return v
		}
		return n
	})
}
