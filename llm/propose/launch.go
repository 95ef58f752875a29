package propose

import (
	"strings"

	"github.com/goccy/go-yaml"
)

// settleLaunch gives the header its launches: kernel names as the code has them, and arguments.
func (p *parse) settleLaunch(h *header, body string) {
	list := entries(body, p.known.Target)
	byName := map[string]item{}
	for _, f := range functions(body) {
		byName[f.name] = f
	}
	if len(list) == 0 && len(byName) == 0 {
		p.complain("no_kernel", "there is no kernel function in the code: send the whole file")
		return
	}
	if len(h.launch) == 0 {
		if len(list) == 1 && list[0].name == p.known.DefaultKernel {
			return // the task's default launch serves
		}
		if len(list) != 1 || !p.known.cpu() {
			p.complain("launch_missing", "the header has no launch: write kernel, args%s", map[bool]string{true: "", false: ", grid and block"}[p.known.cpu()])
			return
		}
		h.mend(p, "launch_from_code")
		h.launch = []yaml.MapSlice{{{Key: "kernel", Value: list[0].name}}}
	}
	for i := range h.launch {
		p.settleOne(h, i, list, byName)
	}
}

func (p *parse) settleOne(h *header, i int, list []item, byName map[string]item) {
	l := h.launch[i]
	at := func(key string) int {
		for j, e := range l {
			if e.Key == key {
				return j
			}
		}
		return -1
	}
	k := at("kernel")
	if k < 0 && len(list) == 1 {
		h.mend(p, "launch_from_code")
		l = append(yaml.MapSlice{{Key: "kernel", Value: list[0].name}}, l...)
		k = 0
	}
	if k < 0 {
		p.complain("launch_missing", "launch %d names no kernel", i+1)
		return
	}
	name, _ := l[k].Value.(string)
	f, ok := byName[name]
	if !ok && len(list) == 1 && len(h.launch) == 1 {
		h.mend(p, "kernel_name")
		f, ok = list[0], true
		l[k].Value = f.name
	}
	if !ok {
		p.complain("kernel_name", "launch names the kernel %s, which the code does not define; it defines %s", name, strings.Join(sortedNames(byName), ", "))
		return
	}
	a := at("args")
	switch args, certain := p.args(l, a, f); {
	case !certain:
		p.complain("launch_args", "launch of %s: its args must name, in the order of its %d parameters, some of: %s", f.name, len(f.params), strings.Join(p.known.Names, ", "))
	case a < 0:
		h.mend(p, "launch_args")
		l = append(l, yaml.MapItem{Key: "args", Value: args})
	case flow(l[a].Value) != flow(args):
		h.mend(p, "launch_args")
		l[a].Value = args
	}
	h.launch[i] = l
}

// args returns a launch's arguments: as written where they can be, else read off the kernel's parameters.
func (p *parse) args(l yaml.MapSlice, at int, f item) ([]any, bool) {
	if at >= 0 {
		list, _ := l[at].Value.([]any)
		good := len(list) > 0
		for _, e := range list {
			s, ok := e.(string)
			good = good && ok && (p.known.has(s) || p.workspaceName(s))
		}
		if good || len(p.known.Names) == 0 {
			return list, true // a wrong number of them is the compiler's or the loader's to say
		}
	}
	var byName []any
	for _, n := range f.params {
		if !p.known.has(n) {
			byName = nil
			break
		}
		byName = append(byName, n)
	}
	if len(byName) > 0 {
		return byName, true
	}
	if len(p.known.DefaultArgs) == len(f.params) && len(f.params) > 0 {
		args := make([]any, len(p.known.DefaultArgs))
		for i, n := range p.known.DefaultArgs {
			args[i] = n
		}
		return args, true
	}
	return nil, false
}

func (p *parse) workspaceName(s string) bool {
	for _, n := range p.scratch {
		if n == s {
			return true
		}
	}
	return false
}
