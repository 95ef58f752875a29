package rules

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"ridgepoint/harness"
)

// hostHeaders are system headers that no kernel has a use for: files, sockets, processes, other code.
var hostHeaders = regexp.MustCompile(`^(sys/(socket|mman|ptrace|syscall|ioctl|prctl|wait|un|stat|types|file|inotify|epoll|random)|netinet/.*|arpa/.*|net/.*|linux/.*|asm/.*|dlfcn|fcntl|spawn|netdb|syscall|fstream|filesystem|iostream|thread)(\.h)?$`)

var includeRE = regexp.MustCompile(`^#\s*(include_next|include|import|embed)\b\s*(.*)$`)

// includes refuses what is not of the toolkit: paths that lead out, files beside the kernel, computed names.
func (c *checker) includes() {
	for _, l := range c.lines {
		m := includeRE.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		verb, what := m[1], strings.TrimSpace(m[2])
		name := strings.Trim(what, "<>\"")
		quoted := strings.HasPrefix(what, "\"")
		switch {
		case verb != "include":
			c.add(l, true, "include", "use #include of a toolkit header", "#%s is not allowed", verb)
		case !quoted && !strings.HasPrefix(what, "<"):
			c.add(l, true, "include", "write the header's name out", "the name of the include is computed")
		case path.IsAbs(name) || strings.Contains(name, "..") || strings.Contains(name, `\`):
			c.add(l, true, "include", "include toolkit headers by their plain names", "%s leads out of the toolkit", what)
		case quoted && len(c.spec.IncludeDirs) == 0 && !toolkit(name):
			c.add(l, true, "include", "put the code into this file; only the task's include_dirs can bring other files", "%s is a file of its own", what)
		case hostHeaders.MatchString(name):
			c.add(l, true, "include", "a kernel computes on its arguments and needs no system", "%s is a header of the host system", what)
		}
	}
}

// toolkitHeaders are what a kernel may also include in quotes.
var toolkitHeaders = regexp.MustCompile(`^(cuda|hip|cooperative_groups|mma|math|std(int|def|bool|lib|atomic|align|io|arg)|string|float|limits|omp|pthread|threads|complex|tgmath|assert|time|errno|unistd|` +
	`[a-z0-9]*intrin|arm_[a-z0-9]+|device_[a-z_]+|vector_[a-z_]+|sm_[0-9_a-z]+|crt)([._/].*)?$`)

func toolkit(name string) bool { return toolkitHeaders.MatchString(name) }

// hostAssembly is what no inline assembly of a kernel may hold: system calls, files, sections and symbols of its own.
var hostAssembly = regexp.MustCompile(`(?i)\b(syscall|sysenter|int\s*\$?0x80|svc\s*#?0)\b|\.(incbin|include|section|pushsection|globa?l|init_array|ctors|weak)\b`)

// deviceAssembly is the same for PTX: files, and variables that outlive the launch.
var deviceAssembly = regexp.MustCompile(`(?i)\.(incbin|include)\b|\.global\s+\.`)

// deviceClock is a clock that inline assembly reads.
var deviceClock = regexp.MustCompile(`(?i)%%?(clock(_hi|64)?|globaltimer(_lo|_hi)?)\b`)

// hostClock is a clock that inline assembly of a C kernel reads: x86's time stamp and performance counters, and Arm's.
var hostClock = regexp.MustCompile(`(?i)\b(rdtscp?|rdpmc|cnt[vp]ct(ss)?_el0|pmccntr_el0)\b`)

// hostClocks are functions and builtins of C that read a clock. No system call stands between most of them and the kernel, so that the
// sandbox cannot see them: a kernel that knows when it is timed must be found in its text.
var hostClocks = map[string]bool{
	"__rdtsc": true, "_rdtsc": true, "__rdtscp": true, "__builtin_ia32_rdtsc": true, "__builtin_ia32_rdtscp": true, "__rdpmc": true, "_rdpmc": true, "__builtin_ia32_rdpmc": true,
	"__builtin_readcyclecounter": true, "__builtin_readsteadycounter": true, "clock_gettime": true, "gettimeofday": true, "timespec_get": true, "omp_get_wtime": true,
}

// assembly looks into inline assembly.
func (c *checker) assembly() {
	pattern := hostAssembly
	if c.structure.Target != harness.TargetCPU {
		pattern = deviceAssembly
	}
	for i, t := range c.tokens {
		if !c.is(i, "asm", "__asm__", "__asm") {
			continue
		}
		open := i + 1
		for c.is(open, "volatile", "__volatile__", "goto", "inline", "__inline__") {
			open++
		}
		if !c.is(open, "(") {
			continue
		}
		if t.depth == 0 {
			c.add(t, true, "assembly", "keep assembly within a function", "assembly at file level can define anything")
		}
		text := c.strings(open)
		if bad := pattern.FindString(text); bad != "" {
			c.add(t, true, "assembly", "leave it out: a kernel computes on its arguments alone", "inline assembly holds %q", strings.TrimSpace(bad))
		}
		if bad := hostClock.FindString(text); bad != "" && c.structure.Target == harness.TargetCPU {
			c.add(t, true, "clock", clockRemedy, "inline assembly reads %s", bad)
		}
		if bad := deviceClock.FindString(text); bad != "" && c.structure.Target != harness.TargetCPU {
			c.add(t, false, "clock", clockRemedy, "inline assembly reads %s", bad)
		}
	}
}

// strings joins the strings within the brackets at open: adjacent ones as the compiler does, others with a blank.
func (c *checker) strings(open int) string {
	var b strings.Builder
	for _, t := range c.tokens[open:c.closing(open)] {
		if t.kind == tokString {
			b.WriteString(strings.Trim(t.text, `"`))
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// hostTricks looks for what runs before or beside the kernel in a shared object.
func (c *checker) hostTricks() {
	c.macroClocks()
	for i, t := range c.tokens {
		switch {
		case c.is(i, "__attribute__", "__attribute") && c.is(i+1, "("):
			c.attribute(i, c.closing(i+1))
		case c.is(i, "main") && t.depth == 0 && c.is(i+1, "("):
			c.add(t, true, "main", "write the kernel function alone", "defines main")
		case t.kind == tokName && hostClocks[t.text] || c.is(i, "clock") && c.is(i+1, "(") && !c.is(i-1, ".", "->"):
			c.add(t, true, "clock", clockRemedy, "%s reads a clock", t.text)
		}
	}
}

// macroClocks looks for clocks behind macros.
func (c *checker) macroClocks() {
	for _, l := range c.lines {
		for _, t := range tokenize(strings.TrimPrefix(l.text, "#")) {
			if t.kind == tokName && hostClocks[t.text] {
				c.add(l, true, "clock", clockRemedy, "a macro stands for %s, which reads a clock", t.text)
			}
		}
	}
}

var badAttributes = []string{"constructor", "__constructor__", "destructor", "__destructor__", "ifunc", "__ifunc__", "init_priority"}

func (c *checker) attribute(from, to int) {
	for _, t := range c.tokens[from:to] {
		section := t.kind == tokString && regexp.MustCompile(`\.(init|fini|ctors|dtors|preinit)`).MatchString(t.text)
		if t.kind == tokName && slices.Contains(badAttributes, t.text) || section {
			c.add(t, true, "constructor", "do all work in the kernel function", "%s runs code when the file is loaded", t.text)
		}
	}
}
