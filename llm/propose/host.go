package propose

import (
	"regexp"
	"strings"
)

// hostIncludes are headers that device code has no use for; NVRTC and hiprtc do not find them.
var (
	hostIncludeRE = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]*[<"](iostream|cstdio|cstdlib|stdio\.h|stdlib\.h|string|string\.h|cstring|vector|chrono|cassert|assert\.h|algorithm|cmath|math\.h|cuda\.h|cuda_runtime\.h|cuda_runtime_api\.h|device_launch_parameters\.h|hip/hip_runtime\.h|torch/[^>"]*|ATen/[^>"]*|c10/[^>"]*|pybind11/[^>"]*|Python\.h)[>"][^\n]*\n?`)
	usingStdRE    = regexp.MustCompile(`(?m)^[ \t]*using[ \t]+namespace[ \t]+std[ \t]*;[ \t]*\n?`)
)

// stripHost removes host code: main, functions that launch kernels or that no kernel uses, their headers.
func (p *parse) stripHost(src string) string {
	items := topLevel(src)
	used := p.reachable(src, items)
	var cut []item
	for _, it := range items {
		switch {
		case it.kind == itemFunction && it.name == "main",
			it.kind == itemFunction && !p.known.cpu() && host(it) && !used[it.name],
			it.kind == itemOther && !p.known.cpu() && bindingRE.MatchString(src[it.from:it.to]):
			cut = append(cut, it)
		}
	}
	for i := len(cut) - 1; i >= 0; i-- {
		src = strings.TrimRight(src[:cut[i].from], " \t\n") + "\n" + strings.TrimLeft(src[cut[i].to:], " \t")
		p.repaired("host_code")
	}
	if !p.known.cpu() {
		if s := hostIncludeRE.ReplaceAllString(src, ""); s != src {
			src = usingStdRE.ReplaceAllString(s, "")
			p.repaired("host_includes")
		}
	}
	return src
}

var bindingRE = regexp.MustCompile(`^\s*(PYBIND11_MODULE|TORCH_LIBRARY)\b`)

// host says whether a function of a device file is host code: one without any specifier is.
func host(f item) bool {
	return !f.has("__global__") && !f.has("__device__") && !f.has("constexpr")
}

// reachable returns the names of the functions that entries use, directly or not.
func (p *parse) reachable(src string, items []item) map[string]bool {
	byName := map[string]item{}
	for _, it := range items {
		if it.kind == itemFunction {
			byName[it.name] = it
		}
	}
	used := map[string]bool{}
	var follow func(it item)
	follow = func(it item) {
		for _, n := range it.names {
			if g, ok := byName[n]; ok && !used[n] && n != it.name {
				used[n] = true
				follow(g)
			}
		}
	}
	for _, it := range entries(src, p.known.Target) {
		used[it.name] = true
		follow(it)
	}
	return used
}
