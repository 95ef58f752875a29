package rules

import (
	"regexp"
	"strings"

	"ridgepoint/harness"
)

var (
	hostAPI    = regexp.MustCompile(`^(cuda|cu|hip|cublas|cudnn|cufft|curand|cusparse|cusolver|hipblas|rocblas|miopen|nccl)[A-Z][A-Za-z0-9_]*$`)
	deviceAPI  = regexp.MustCompile(`^(cudaTextureObject_t|cudaSurfaceObject_t|cudaError_t|cudaReadMode[A-Za-z]*|cudaBoundaryMode[A-Za-z]*|cuTensorMap[A-Za-z]*|CUtensorMap.*|cudaGridDependencySynchronize|cudaTriggerProgrammaticLaunchCompletion|cuC(abs|add|sub|mul|div|onj|real|imag|fma)f?|cuComplex|cuDoubleComplex|cuFloatComplex|hipBlockDim_[xyz]|hipBlockIdx_[xyz]|hipThreadIdx_[xyz]|hipGridDim_[xyz])$`)
	allocators = map[string]bool{"malloc": true, "free": true, "realloc": true, "calloc": true, "cudaMalloc": true, "cudaFree": true}
	clocks     = map[string]bool{"clock": true, "clock64": true, "wall_clock64": true, "globaltimer": true, "__builtin_readcyclecounter": true, "s_memtime": true, "__clock": true, "__clock64": true}
)

// clockRemedy goes with a clock that a kernel reads. On a device it is no refusal: a kernel that waits is slow, and one that returns
// early is wrong, both of which show. A C kernel shares its process with the clock that times single launches, and is refused.
const clockRemedy = "leave it out: the harness measures, and a result must not depend on time"

// deviceTricks looks for host code, heap use and clocks in CUDA and HIP source.
func (c *checker) deviceTricks() {
	for i, t := range c.tokens {
		if t.kind == tokPunct && t.text == "<<<" {
			c.add(t, true, "host_code", "state the launches in the header; kernels do not launch kernels", "launches a kernel")
		}
		if t.kind != tokName {
			continue
		}
		call := c.is(i+1, "(")
		member := c.is(i-1, ".", "->")
		switch {
		case t.text == "__host__" && !c.nearDevice(i):
			c.add(t, true, "host_code", "write device code alone, or __host__ __device__", "has a host function")
		case t.text == "main" && call && t.depth == 0:
			c.add(t, true, "host_code", "write the kernel alone", "defines main")
		case hostAPI.MatchString(t.text) && !deviceAPI.MatchString(t.text) && !strings.HasPrefix(t.text, "cute") && call:
			c.add(t, true, "host_code", "leave host calls out: the harness allocates, copies and launches", "calls %s", t.text)
		case allocators[t.text] && call && !member:
			c.add(t, true, "device_heap", "declare a workspace in the header", "calls %s: heap memory outlives the launch", t.text)
		case t.text == "new" && !c.is(i-1, "operator"):
			c.add(t, true, "device_heap", "declare a workspace in the header", "uses new: heap memory outlives the launch")
		case clocks[t.text] && call && !member:
			c.add(t, false, "clock", clockRemedy, "reads a clock")
		}
	}
}

// nearDevice reports whether __device__ or __global__ stands beside __host__.
func (c *checker) nearDevice(i int) bool {
	for j := max(0, i-3); j <= min(i+3, len(c.tokens)-1); j++ {
		if c.is(j, "__device__", "__global__") {
			return true
		}
	}
	return false
}

// globals looks for variables that keep a value from launch to launch: at file level, or static within a function.
func (c *checker) globals() {
	word := c.task.Rules.WritableGlobals
	if word == "allow" {
		return
	}
	refuse := word == "forbid"
	c.linkage = c.linkageDepths()
	remedy := "keep state in a workspace (init: zero), or make it const"
	for start := 0; start < len(c.tokens); {
		end := c.statementEnd(start)
		if v, ok := c.writable(start, end); ok {
			c.add(v, refuse, "writable_global", remedy, "%s keeps its value from launch to launch", v.text)
		}
		start = end + 1
	}
}

// statementEnd returns the index of the ; or of the brace that ends the piece of a statement starting at i.
func (c *checker) statementEnd(i int) int {
	for j := i; j < len(c.tokens); j++ {
		switch {
		case c.is(j, "(", "["):
			j = c.closing(j)
		case c.is(j, ";", "}"):
			return j
		case c.is(j, "{"):
			if c.initialiser(i, j) {
				j = c.closing(j)
				continue
			}
			return j
		}
	}
	return len(c.tokens) - 1
}

// initialiser reports whether the brace at j holds values: it follows = or a declared name without parentheses.
func (c *checker) initialiser(i, j int) bool {
	if c.is(j-1, "=") {
		return true
	}
	for k := i; k < j; k++ {
		if c.is(k, "(", "struct", "class", "union", "enum", "namespace", "extern", "do", "else", "template") {
			return false
		}
	}
	return j > i+1 && (c.isName(j-1) || c.is(j-1, "]"))
}

// writable reports whether a statement declares a variable that outlives a launch, and names it.
func (c *checker) writable(start, end int) (token, bool) {
	if start >= end || !c.is(end, ";") {
		return token{}, false
	}
	file := c.tokens[start].depth == c.linkage[start]
	var static, device, constant bool
	name := -1
	for j := start; j < end; j++ {
		t := c.tokens[j]
		switch {
		case c.is(j, "static"):
			static = true
		case c.is(j, "__device__", "__managed__"):
			device = true
		case c.is(j, "const", "constexpr"):
			constant = true
		case c.is(j, "__constant__", "__shared__", "extern", "typedef", "using", "struct", "union", "enum", "class", "template", "return", "namespace", "static_assert", "_Static_assert"):
			return token{}, false
		case c.is(j, "*"):
			constant = false // only a const after the star fixes the pointer itself
		case c.is(j, "__attribute__", "__align__", "alignas", "_Alignas", "__launch_bounds__") && c.is(j+1, "("):
			j = c.closing(j + 1)
		case c.is(j, "("): // a function, or a macro's use
			return token{}, false
		case t.kind == tokName:
			name = j
		case c.is(j, "=", "[", "{", ","):
			return c.verdict(name, start, file, static, device, constant)
		}
	}
	return c.verdict(name, start, file, static, device, constant)
}

func (c *checker) verdict(name, start int, file, static, device, constant bool) (token, bool) {
	if name <= start || constant {
		return token{}, false
	}
	if c.structure.Target == harness.TargetCPU {
		return c.tokens[name], file || static
	}
	return c.tokens[name], device && (file || static) || static && !file
}

// linkageDepths is, per token, the brace depth of file level there: extern "C" { and namespace { do not count.
func (c *checker) linkageDepths() []int {
	out := make([]int, len(c.tokens))
	var open []bool
	depth := 0
	for j := range c.tokens {
		out[j] = depth
		switch {
		case c.is(j, "{"):
			linkage := j >= 2 && c.tokens[j-1].kind == tokString && c.is(j-2, "extern") || c.is(j-1, "namespace") || c.is(j-2, "namespace")
			open = append(open, linkage)
			if linkage {
				depth++
			}
		case c.is(j, "}") && len(open) > 0:
			if open[len(open)-1] {
				depth--
			}
			open = open[:len(open)-1]
		}
	}
	return out
}
