package propose

import (
	"regexp"
	"strings"
)

// maxReplyBytes bounds what is looked at; the client's limit is lower.
const maxReplyBytes = 8 << 20

// Parse reads a reply. Without complaints the draft is whole; with them it holds what could be read, to be shown to the model again.
// truncated says that the endpoint cut the reply at its token limit.
func Parse(reply string, truncated bool, known Known) (*Draft, []Complaint) {
	p := &parse{known: known, cut: truncated}
	if len(reply) > maxReplyBytes {
		p.complain("too_long", "the reply is over %d bytes: send one file and few words", maxReplyBytes)
		return &p.draft, p.faults
	}
	text := p.clean(reply)
	p.draft.Expectation = expectation(text)
	blocks := p.blocks(text)
	src, ok := p.choose(text, blocks)
	if ok {
		p.structure(src, text)
	}
	if len(p.faults) == 0 && p.draft.Kind == KindStructure && known.CheckFunc != nil {
		p.faults = append(p.faults, known.CheckFunc(p.draft.Source)...)
	}
	return &p.draft, p.faults
}

// choose finds the one file that a reply proposes, and puts it together from its parts. Without one, the reply may be a point, or
// else it gets a complaint.
func (p *parse) choose(text string, blocks []block) (string, bool) {
	var diffs, code, heads []block
	for i, b := range blocks {
		switch {
		case isDiff(b):
			diffs = append(diffs, b)
		case len(functions(b.text)) > 0 || strings.Contains(b.text, "__global__") || headerWithCode(b.text):
			if whole, ok := p.continued(blocks[i:]); ok {
				code = append(code, whole)
				return p.assemble(text, p.distinct(code), heads)
			}
			code = append(code, b)
		case headerOpenRE.MatchString(b.text) || (headerKeyRE.MatchString(b.text) && strings.Contains(b.text, "\n")):
			heads = append(heads, b)
		case b.open && strings.Contains(b.text, "{"):
			code = append(code, b)
		}
	}
	code = p.distinct(code)
	switch {
	case len(code) > 0:
		return p.assemble(text, code, heads)
	case len(diffs) > 0:
		return p.applyDiff(diffs)
	case len(heads) > 0 && p.onlyDefaults(heads):
		return "", false
	case p.point(text, blocks):
		return "", false
	case len(heads) > 0:
		p.complain("no_code", "the reply has a header and no kernel: send the whole file, header and code, in one fenced block")
	case p.cut || (len(blocks) > 0 && blocks[len(blocks)-1].open):
		p.complain("truncated", "the reply ends before the file does: send a shorter one, with few words and no commentary in the code")
	case refusalRE.MatchString(text):
		p.complain("refusal", "the reply holds no kernel. This is a performance task on the user's own hardware: send one whole structure file in a fenced block")
	default:
		p.complain("no_code", "the reply holds no kernel: send one whole structure file, header and code, in one fenced block")
	}
	return "", false
}

// headerWithCode says whether code follows a header, also one that is never closed.
func headerWithCode(text string) bool {
	at := headerOpenRE.FindStringIndex(text)
	return at != nil && codeStartRE.MatchString(text[at[1]:])
}

// continued joins a block that stops in the middle with those after it, if all of them make one whole file.
func (p *parse) continued(blocks []block) (block, bool) {
	if balanced(blocks[0].text) || len(blocks) < 2 {
		return block{}, false
	}
	joined := blocks[0]
	for _, b := range blocks[1:] {
		joined.text = strings.TrimRight(joined.text, "\n") + "\n" + b.text
		if balanced(joined.text) && len(entries(joined.text, p.known.Target)) > 0 {
			p.repaired("joined_blocks")
			return joined, true
		}
	}
	return block{}, false
}

var refusalRE = regexp.MustCompile(`(?i)\b(i can(no|')t|i am unable|i'm unable|i'm sorry|as an ai)\b`)

// distinct drops blocks that repeat another block or one of the sources that the model was shown, as long as something is left.
func (p *parse) distinct(code []block) []block {
	var out []block
	for i, b := range code {
		repeat := false
		for _, later := range code[i+1:] {
			repeat = repeat || strings.TrimSpace(later.text) == strings.TrimSpace(b.text)
		}
		for _, parent := range p.known.Parents {
			repeat = repeat || strings.TrimSpace(invisible.Replace(parent.Source)) == strings.TrimSpace(b.text)
		}
		if repeat {
			p.repaired("repeated_block")
			continue
		}
		out = append(out, b)
	}
	if len(out) == 0 && len(code) > 0 {
		return code[len(code)-1:]
	}
	return out
}

// assemble makes one source of the blocks with code: a single whole one; the parts of one file; or the last of several versions when
// the reply says that it is the better one.
func (p *parse) assemble(text string, code, heads []block) (string, bool) {
	var whole, headed []block
	for _, b := range code {
		if len(entries(b.text, p.known.Target)) > 0 && balanced(b.text) {
			whole = append(whole, b)
			if headerOpenRE.MatchString(b.text) || headerLineRE.MatchString(b.text) {
				headed = append(headed, b)
			}
		}
	}
	pick := func(b block) (string, bool) {
		p.cut = p.cut || (b.open && !balanced(b.text))
		if len(code) > 1 {
			p.repaired("several_blocks")
		}
		if len(heads) > 0 && !headerOpenRE.MatchString(b.text) && !headerLineRE.MatchString(b.text) {
			p.repaired("header_apart")
			return asComment(heads[len(heads)-1].text) + b.text, true
		}
		return b.text, true
	}
	switch {
	case len(code) == 1:
		return pick(code[0])
	case len(headed) == 1 && p.selfContained(headed[0], code):
		return pick(headed[0])
	case len(headed) > 1:
		if finalRE.MatchString(between(text, headed[len(headed)-2].text, headed[len(headed)-1].text)) {
			return pick(headed[len(headed)-1])
		}
		p.complain("several_files", "the reply holds %d whole files: send the one that is to be tried", len(headed))
		return "", false
	case len(whole) == 1 && p.selfContained(whole[0], code):
		return pick(whole[0])
	}
	if joined, ok := p.join(code, heads); ok {
		return joined, true
	}
	if len(whole) > 1 && finalRE.MatchString(between(text, whole[len(whole)-2].text, whole[len(whole)-1].text)) {
		return pick(whole[len(whole)-1])
	}
	p.complain("several_files", "the reply holds %d pieces of code that do not make one file: send one whole file in one fenced block", len(code))
	return "", false
}

var finalRE = regexp.MustCompile(`(?i)\b(final|better|improved|instead|corrected|fixed|revised|actually|updated|second attempt)\b`)

// between returns the words that stand between two pieces of a text.
func between(text, a, b string) string {
	first, last := firstLine(a), firstLine(b)
	i := strings.Index(text, strings.TrimSpace(a))
	if i < 0 {
		i = strings.Index(text, first)
	} else {
		i += len(strings.TrimSpace(a))
	}
	j := strings.LastIndex(text, last)
	if i < 0 || j < i {
		return ""
	}
	return text[i:j]
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

var kernelRE = regexp.MustCompile(`\bkernel["']?\s*:\s*["']?(\w+)`)

// selfContained says whether a block defines the kernels that its header names, and needs no function of another block.
func (p *parse) selfContained(b block, all []block) bool {
	own := map[string]bool{}
	for _, f := range functions(b.text) {
		own[f.name] = true
	}
	q := &parse{known: p.known}
	if head, _, found, _ := q.splitHeader(b.text); found {
		for _, m := range kernelRE.FindAllStringSubmatch(head, -1) {
			if !own[m[1]] {
				return false
			}
		}
	}
	_, used := freeMacros(b.text)
	for _, other := range all {
		for _, f := range functions(other.text) {
			if !own[f.name] && used[f.name] {
				return false
			}
		}
	}
	return true
}

// join puts the parts of one file together: all names defined once, and balanced as a whole.
func (p *parse) join(code, heads []block) (string, bool) {
	var parts []string
	headed := false
	for _, b := range code {
		headed = headed || headerOpenRE.MatchString(b.text)
		parts = append(parts, strings.Trim(b.text, "\n"))
	}
	joined := strings.Join(parts, "\n") + "\n"
	seen := map[string]bool{}
	for _, f := range functions(joined) {
		if seen[f.name] {
			return "", false
		}
		seen[f.name] = true
	}
	if !balanced(joined) || len(entries(joined, p.known.Target)) == 0 {
		return "", false
	}
	p.repaired("joined_blocks")
	if !headed && len(heads) > 0 {
		p.repaired("header_apart")
		joined = asComment(heads[0].text) + joined
	}
	return joined, true
}

func asComment(head string) string {
	if headerOpenRE.MatchString(head) {
		if !strings.Contains(head, "*/") {
			head += "\n*/"
		}
		return strings.TrimRight(head, "\n") + "\n"
	}
	return "/* ridgepoint\n" + strings.Trim(head, "\n") + "\n*/\n"
}

func balanced(src string) bool {
	braces, parens, ifs := balance(src)
	return braces == 0 && parens == 0 && ifs == 0 && lex(src).open != "comment"
}

// onlyDefaults reads a header without code that differs from a parent's in its defaults alone: a point.
func (p *parse) onlyDefaults(heads []block) bool {
	q := &parse{known: p.known}
	text, _, found, _ := q.splitHeader(asComment(heads[len(heads)-1].text))
	if !found {
		return false
	}
	h, ok := q.decode(text)
	if !ok || len(h.defaults) == 0 || len(h.launch) > 0 || len(h.params) > 0 {
		return false
	}
	pairs := map[string]string{}
	for name, v := range h.defaults {
		if s, ok := scalar(v); ok {
			pairs[name] = s
		}
	}
	return p.pointOf(pairs, "")
}

// structure mends a source into a structure file.
func (p *parse) structure(src, reply string) {
	p.draft.Kind, p.draft.Source = KindStructure, src
	if line, what, ok := elision(src); ok {
		p.faults = append(p.faults, Complaint{Code: "elided", Line: line, Text: "code was left out (" + what + "): send the whole file"})
		return
	}
	head, body, found, exact := p.splitHeader(src)
	before := body
	body, ok := p.complete(body)
	if !ok {
		return
	}
	if body = p.linkage(p.stripHost(body)); !balanced(body) { // a brace too many in the kernels stood for one too few in host code
		p.complain("unbalanced", "without its host code the file does not close the braces that it opens: send the kernels alone, mended")
		return
	}
	if !found {
		p.withoutHeader(body, reply)
		return
	}
	h, ok := p.decode(head)
	if !ok {
		return
	}
	p.scratch = append(mapKeys(h.workspace), mapKeys(h.tensorMaps)...)
	if h.direction == "" {
		if d := directionOf(reply); d != "" {
			h.direction, h.changed = d, true
		}
	}
	body = p.reconcile(h, body)
	p.draft.Direction = h.direction
	switch {
	case exact && !h.changed && body == before:
		p.draft.Source = src
	case exact && !h.changed:
		p.draft.Source = "/* ridgepoint" + strings.TrimRight(head, " ") + "*/\n" + strings.TrimLeft(body, "\n")
	default:
		p.draft.Source = h.write() + strings.TrimLeft(body, "\n")
	}
	if !strings.HasSuffix(p.draft.Source, "\n") {
		p.draft.Source += "\n"
	}
}

// complete mends an end that lacks one brace or has one too many, and refuses a source that stops in the middle. Where a missing #endif
// belongs is not certain.
func (p *parse) complete(src string) (string, bool) {
	braces, parens, ifs := balance(src)
	trimmed := strings.TrimRight(src, " \t\n")
	last := byte(0)
	if trimmed != "" {
		last = trimmed[len(trimmed)-1]
	}
	if braces == 1 && ifs == 0 && parens == 0 && !p.cut && (last == '}' || last == ';') {
		p.repaired("closing_brace")
		src, braces = trimmed+"\n}\n", 0
	}
	if braces == -1 && last == '}' && !p.cut {
		p.repaired("extra_brace")
		src, braces = trimmed[:len(trimmed)-1]+"\n", 0
	}
	if braces > 0 || ifs > 0 || parens > 0 || lex(src).open == "comment" || (p.cut && braces != 0) {
		p.complain("truncated", "the file ends in the middle (%d braces, %d parentheses and %d #if are open): send all of it, shorter if need be", braces, parens, ifs)
		return src, false
	}
	if braces < 0 || parens < 0 || ifs < 0 {
		p.complain("unbalanced", "the file closes %d braces and %d parentheses more than it opens: send it mended", max(0, -braces), max(0, -parens))
		return src, false
	}
	return src, true
}

// withoutHeader finds the header of a source that has none: the task's default launch, a parent's header, or one read off a kernel
// without parameters.
func (p *parse) withoutHeader(body, reply string) {
	list := entries(body, p.known.Target)
	free, used := freeMacros(body)
	p.draft.Source, p.draft.Direction = body, directionOf(reply)
	switch {
	case len(list) == 0:
		p.complain("no_kernel", "there is no kernel function in the code: send the whole file")
		return
	case len(list) == 1 && list[0].name == p.known.DefaultKernel && len(free) == 0:
		p.repaired("header_missing")
		return
	}
	for _, parent := range p.known.Parents {
		if h, ok := parentHeader(parent.Source); ok && p.fits(h, list, free, used) {
			p.repaired("header_from_parent")
			p.scratch = append(mapKeys(h.workspace), mapKeys(h.tensorMaps)...)
			if d := directionOf(reply); d != "" {
				h.direction = d
			}
			body = p.reconcile(h, body)
			p.draft.Direction, p.draft.Source = h.direction, h.write()+strings.TrimLeft(body, "\n")
			return
		}
	}
	if len(list) == 1 && len(free) == 0 && p.known.cpu() {
		h := &header{defaults: map[string]any{}, direction: p.draft.Direction}
		p.repaired("header_missing")
		body = p.reconcile(h, body)
		p.draft.Source = h.write() + strings.TrimLeft(body, "\n")
		return
	}
	p.complain("header_missing", "the file has no header: begin it with the comment /* ridgepoint ... */ that says direction, launch, params and default%s",
		map[bool]string{true: "; the code uses " + strings.Join(free, ", "), false: ""}[len(free) > 0])
}

// fits says whether a parent's header serves a source: the same kernels, all of the source's macros declared, all parameters used.
func (p *parse) fits(h *header, list []item, free []string, used map[string]bool) bool {
	names := map[string]bool{}
	for _, f := range list {
		names[f.name] = true
	}
	for _, l := range h.launch {
		for _, e := range l {
			if name, ok := e.Value.(string); ok && e.Key == "kernel" && !names[name] {
				return false
			}
		}
	}
	for _, name := range free {
		if h.param(name) == nil {
			return false
		}
	}
	inLaunch := h.exprNames()
	for _, q := range h.params {
		if !used[q.name] && !inLaunch[q.name] {
			return false
		}
	}
	return len(h.launch) > 0
}
