package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goodTask is a task file with nothing wrong; the cases below each spoil one thing.
const goodTask = `task_name: t
problem_shape: {rows: 8, cols: 4, dtype: float32}
reference: torch.softmax(input, dim=-1)
targets: {cpu: {arch: x86-64, baseline: naive.c}}
default_launch: {kernel: k, args: [input, output, rows, cols]}
`

const goodKernel = "void k(const float *in, float *out, int rows, int cols) {}\n"

// goodHeader is a structure file with nothing wrong.
const goodHeader = `/* ridgepoint
launch: {kernel: k, args: [input, output, rows, cols]}
params:
  A: {values: [1, 2]}
*/
` + goodKernel

// badTask spoils goodTask: old becomes new, or new is a further line when old is empty. want is a piece of the message that
// no other case gives.
type badTask struct{ name, old, new, place, want string }

var badTasks = []badTask{
	{"unknown key", "", "evall: {atol: 1}", ":6:1:", `key "evall" is not known; did you mean "eval"?`},
	{"missing key", "reference: torch.softmax(input, dim=-1)\n", "", ":1:1:", `key "reference" is missing`},
	{"broken syntax", "", "eval: [1", ":6:7:", "is not valid YAML: sequence end"},
	{"tab", "", "eval:\n\tatol: 1", ":7:1:", "indent with spaces"},
	{"key twice", "", "task_name: u", ":6:1:", "defines a key twice"},
	{"second document", "", "---\ntask_name: u", ":6:1:", "second YAML document"},
	{"unknown alias", "", "eval: *none", ":6:7:", "has no anchor"},
	{"merge key", "", "eval: {<<: {atol: 1}}", ":6:8:", "merge keys"},
	{"too deep", "", "eval: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "", "nested too deep"},
	{"compound key", "", "eval: {[a]: 1}", ":6:11:", "found an invalid key for this map"},
	{"too long", "", "description: \"" + strings.Repeat("x", 1<<20) + "\"", "", "bytes long"},
	{"name with a blank", "task_name: t", "task_name: a b", ":1:12:", `"a b" is not a name; use up to 64`},
	{"dim of zero", "rows: 8", "rows: 0", ":2:23:", "0 is out of range"},
	{"dim in words", "rows: 8", "rows: many", ":2:23:", `want an int, got "many"`},
	{"shape is a number", "{rows: 8, cols: 4, dtype: float32}", "5", ":2:16:", "want a map, got a single value"},
	{"no dims", "{rows: 8, cols: 4, dtype: float32}", "{dtype: float32}", ":2:16:", "has no dims"},
	{"unknown dtype", "float32", "float23", ":2:42:", `dtype "float23" is not known`},
	{"dim is a word of C", "rows: 8", "for: 8", ":2:17:", "is a word of C"},
	{"dim is no name", "rows: 8", "2d: 8", ":2:17:", `"2d" is not a name; use letters`},
	{"size without a dim", "", "sizes: [{rows: 1}]", ":6:9:", `a size lacks the dim "cols"`},
	{"size twice", "", "sizes: [{rows: 1, cols: 2}, {cols: 2, rows: 1}]", ":6:29:", "the size rows=1,cols=2 stands twice"},
	{"no sizes", "", "sizes: []", ":6:8:", "sizes: is empty"},
	{"range upside down", "", "vary: {rows: [9, 2]}", ":6:14:", "the range [9, 2] is empty"},
	{"range of three", "", "vary: {rows: [1, 2, 3]}", ":6:14:", "want two numbers, got 3"},
	{"vary in words", "", "vary: some", ":6:7:", "want a map of ranges or none"},
	{"unknown name in work", "", `work: {flops: "5*rows*colls"}`, ":6:23:", `name "colls" in "5*rows*colls" is not known here; did you mean "cols"?`},
	{"broken expression", "", `work: {flops: "5*rows*"}`, ":6:2", "got end of file"},
	{"division by zero", "", `work: {flops: "rows // 0"}`, ":6:21:", "division by zero"},
	{"negative work", "", `work: {flops: "-rows"}`, ":6:15:", `"-rows" is -8 at rows=8,cols=4`},
	{"no output", "", "tensors: {input: {shape: [rows], role: in}}", ":6:10:", "there is no output"},
	{"no shape", "", "tensors: {output: {role: out}}", ":6:19:", "tensors.output: has no shape"},
	{"no role", "", "tensors: {output: {shape: [rows]}}", ":6:19:", "has no role"},
	{"unknown role", "", "tensors: {output: {shape: [rows], role: outt}}", ":6:41:", `"outt" is not known; did you mean "out"?`},
	{"tensor named as a dim", "", "tensors: {rows: {shape: [rows], role: out}}", ":6:11:", `the name "rows" is taken; give dims`},
	{"output with init", "", "tensors: {output: {shape: [rows], role: out, init: normal}}", ":6:52:", "an output has no init"},
	{"strides of another rank", "", "tensors: {output: {shape: [rows, cols], role: out, strides: [1]}}", ":6:19:", "has 2 dims and 1 strides"},
	{"odd alignment", "", "tensors: {output: {shape: [rows], role: out, alignment: 12}}", ":6:57:", "12 is not a power of two"},
	{"nine dims", "", "tensors: {output: {shape: [1, 1, 1, 1, 1, 1, 1, 1, 1], role: out}}", ":6:27:", "has 9 dims"},
	{"too large", "rows: 8, cols: 4", "rows: 2000000000, cols: 2000000000", ":2:16:", "is over 1024 GiB"},
	{"scalar without value", "", "scalars: {alpha: {dtype: float32}}", ":6:18:", "scalars.alpha: has no value;"},
	{"scalar with a fraction", "", "scalars: {alpha: {value: 1.5, dtype: int32}}", ":6:26:", "1.5 is no int32"},
	{"no target", "targets: {cpu: {arch: x86-64, baseline: naive.c}}\n", "", ":1:1:", "names no target"},
	{"no arch", "arch: x86-64, ", "", ":4:11:", "targets.cpu: has no arch"},
	{"arch in short", "targets: {cpu: {arch: x86-64, baseline: naive.c}}", "targets: {cuda: {arch: \"90\"}}", ":4:24:", `"90" is not an arch of the cuda target`},
	{"dtype that C lacks", "float32", "float8_e4m3", ":4:11:", "C has no type for it"},
	{"dtype that a card lacks", "float32}\nreference: torch.softmax(input, dim=-1)\ntargets: {cpu: {arch: x86-64, baseline: naive.c}}", "bfloat16}\nreference: torch.softmax(input, dim=-1)\ntargets: {cuda: {arch: sm_75}}", ":4:11:", "sm_75 has no bfloat16"},
	{"no such baseline", "naive.c", "other.c", ":4:41:", "other.c: no such file"},
	{"empty baseline", "naive.c", "empty.c", ":4:41:", "empty.c is empty"},
	{"registers of a processor", "arch: x86-64", "arch: x86-64, maxrregcount: 64", ":4:45:", "has no maxrregcount"},
	{"fast math by a flag", "arch: x86-64", "arch: x86-64, flags: [-Ofast]", ":4:39:", "-Ofast loosens the arithmetic"},
	{"flag that reads files", "arch: x86-64", "arch: x86-64, flags: [-include]", ":4:39:", `flag "-include" is not allowed for cpu`},
	{"no such include_dirs", "arch: x86-64", "arch: x86-64, include_dirs: [headers]", ":4:46:", "headers is not a folder"},
	{"flags without a choice", "arch: x86-64", "arch: x86-64, search_flags: {level: [-O2]}", ":4:53:", "leaves no choice"},
	{"too few warm-ups", "targets: {cpu: {arch: x86-64, baseline: naive.c}}\ndefault_launch: {kernel: k, args: [input, output, rows, cols]}", "targets: {cuda: {arch: sm_90}}\neval: {warmup_iters: 5}", ":5:22:", "5 launches do not bring a GPU's clocks up"},
	{"protocol keeps nothing", "", "eval: {protocol: {runs: 3, discard: 3}}", ":6:18:", "drops 3 of 3 runs"},
	{"exclusion without reason", "", "eval: {exclude_distributions: {sorted: \"\"}}", ":6:40:", "has no reason"},
	{"tolerance in words", "", "eval: {atol: tiny}", ":6:14:", `want a number, got "tiny"`},
	{"neither true nor false", "", "eval: {deterministic: maybe}", ":6:23:", `want a bool, got "maybe"`},
	{"unknown operator", "torch.softmax(", "torch.sofmax(", ":3:18:", `torch.sofmax is not an operator here; did you mean "softmax"?`},
	{"unknown input", "softmax(input", "softmax(inputs", ":3:26:", "undefined: inputs"},
	{"unknown parameter of a function", "torch.softmax(input, dim=-1)", "|\n  def f(x):\n    return x", ":4:9:", `parameter "x" names no input`},
	{"unclosed reference", "dim=-1)", "dim=-1", ":3:25:", `"(" is not closed`},
	{"empty reference", "torch.softmax(input, dim=-1)", `""`, ":3:12:", "reference: is empty"},
	{"empty command", "torch.softmax(input, dim=-1)", "{command: []}", ":3:12:", "has no command"},
	{"reward without expression", "", "reward: {kind: expr}", ":6:9:", `kind is "expr", expr is ""`},
	{"pattern that leads out", "", "structures: /tmp/*.c", ":6:13:", "is not a file pattern"},
	{"pattern without files", "", "structures: none/*.c", ":6:13:", "matches no file"},
	{"no text", "task_name: t", "task_name: \xff\xfe", "", "is not text in UTF-8"},
	{"launch without args", ", args: [input, output, rows, cols]", "", ":5:17:", "default_launch: has no args"},
	{"unknown argument", "[input, output, rows, cols]", "[input, outptu, rows, cols]", ":5:43:", `"outptu" is no tensor, workspace, scalar or dim; did you mean "output"?`},
	{"output left out", "[input, output, rows, cols]", "[input, rows, cols]", ":5:17:", "the output output is no argument of any launch"},
	{"width of a tensor", "rows, cols]", "rows, input:int64]", ":5:17:", "has a width that it cannot have"},
	{"grid without block", "kernel: k,", "kernel: k, grid: [rows],", ":5:17:", "has one of grid and block"},
	{"grid of zero", "kernel: k,", "kernel: k, grid: [rows - 8], block: [32],", ":5:17:", `"rows - 8" is 0, want at least 1`},
	{"grid of a fraction", "kernel: k,", "kernel: k, grid: [rows / 3], block: [32],", ":5:17:", "want an int; `/` is exact"},
	{"too many threads", "kernel: k,", "kernel: k, grid: [1], block: [2048],", ":5:17:", "over 1024 threads"},
	{"four extents", "kernel: k,", "kernel: k, grid: [1, 1, 1, 1], block: [32],", ":5:35:", "has 4 extents"},
	{"empty forbidden word", "", "rules: {forbid: [\"\"]}", ":6:17:", "holds an empty word"},
}

// badStructure spoils goodHeader in the same way; file is the name it has.
type badStructure struct{ name, old, new, place, want, file string }

var badStructures = []badStructure{
	{"header not closed", "*/\n", "", ":1:1:", "the header comment is never closed", ""},
	{"param without values", "{values: [1, 2]}", "{}", ":4:6:", "params.A: has no values", ""},
	{"list and range", "{values: [1, 2]}", "{values: [1, 2], min: 1}", ":4:6:", "has both a list and a range", ""},
	{"half a range", "{values: [1, 2]}", "{min: 1}", ":4:6:", "a range needs min and max", ""},
	{"empty range", "{values: [1, 2]}", "{min: 4, max: 1}", ":4:6:", "the range from 4 to 1 is empty", ""},
	{"log range from zero", "{values: [1, 2]}", "{min: 0, max: 8, log: true}", ":4:6:", "a log range cannot start at 0", ""},
	{"log and step", "{values: [1, 2]}", "{min: 1, max: 8, log: true, step: 2}", ":4:6:", "has both log and step", ""},
	{"step of zero", "{values: [1, 2]}", "{min: 1, max: 8, step: 0}", ":4:6:", "step 0 does not fit the range", ""},
	{"mixed values", "[1, 2]", "[1, two]", ":4:19:", "two is a string among values of type int", ""},
	{"value twice", "[1, 2]", "[1, 1]", ":4:19:", "the value 1 stands twice", ""},
	{"no value at all", "[1, 2]", "[]", ":4:15:", "has 0 values", ""},
	{"type against values", "{values: [1, 2]}", "{values: [1, 2], type: bool}", ":4:6:", "type is bool, the values are of type int", ""},
	{"macro with a quote", "[1, 2]", `["a\"b"]`, ":4:16:", "cannot be a macro's value", ""},
	{"bound in words", "{values: [1, 2]}", "{min: low, max: 3}", ":4:12:", "want a number, got low", ""},
	{"param named as a dim", "  A:", "  rows:", ":4:3:", "choose a name that no dim", ""},
	{"default not among the values", "*/\n", "default: {A: 3}\n*/\n", ":5:14:", "default.A: 3 is not one of its values", ""},
	{"default against a constraint", "*/\n", "constraints: [A > 1]\n*/\n", ":5:14:", `constraint "A > 1" does not hold`, ""},
	{"constraint that is a number", "*/\n", "constraints: [A + 1]\n*/\n", ":5:14:", `constraint "A + 1" is 2, want true or false`, ""},
	{"option of the person", "{values: [1, 2]}", "{values: [1, 2], option: fast_math}", ":4:31:", `option "fast_math" is not the structure's to choose`, ""},
	{"grid on a processor", "kernel: k,", "kernel: k, grid: [1], block: [1],", ":2:9:", "the cpu target has no grid", ""},
	{"workspace without shape", "*/\n", "workspace: {w: {init: zero}}\n*/\n", ":5:16:", "workspace.w: has no shape", ""},
	{"tensor map in C", "*/\n", "tensor_maps: {m: {tensor: input, box: [8, 4]}}\n*/\n", ":5:14:", "only the cuda target has them", ""},
	{"version in words", "*/\n", "requires: {toolkit: newest}\n*/\n", ":5:21:", "is not a version bound", ""},
	{"direction with a blank", "*/\n", "direction: go on\n*/\n", ":5:12:", `direction: "go on" is not a name`, ""},
	{"no launch at all", "launch: {kernel: k, args: [input, output, rows, cols]}\n", "launch: []\n", ":2:9:", "has 0 launches", ""},
	{"kernel without a name", "kernel: k", "kernel: k()", ":2:18:", `"k()" is not a name; write the name of an extern "C" function`, ""},
	{"wrong extension", "", "", "", `extension ".py" fits no target of task t (cpu)`, "k.py"},
}

// badConfig is a whole campaign file.
type badConfig struct{ name, text, place, want string }

var badConfigs = []badConfig{
	{"unknown key", "name: a\nbudgets: {wall: 1m}\n", ":2:1:", "did you mean budget?"},
	{"duration without unit", "budget: {wall: 90}\n", "", "want a number with its unit"},
	{"number in words", "seed: none\n", ":1:7:", "want a whole number that is not negative, got a text"},
	{"broken syntax", "budget: {wall: 1m\n", ":1:9:", "could not find flow mapping end token"},
	{"no such structures", "structures: [none/*.c]\n", "", "names no file"},
	{"unknown target", "target: tpu\n", ":1:9:", `target "tpu" is not known`},
	{"unknown optimizer", "optimizer: oracle\n", ":1:12:", `optimizer "oracle" is not known`},
	{"share over one", "remeasure_share: 1.5\n", ":", "remeasure_share: want 0 to 0.5"},
	{"unknown reward", "reward: {kind: best}\n", ":1:9", `reward.kind "best" is not known`},
}

// complain runs Ridgepoint in process and returns its exit code and what it says on stderr.
func complain(t *testing.T, args ...string) (int, string) {
	t.Helper()
	dir := t.TempDir()
	getenv := func(key string) string {
		if key == "RIDGEPOINT_CACHE" || key == "RIDGEPOINT_DATA" {
			return dir
		}
		return os.Getenv(key)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), environment{args: args, getenv: getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	return code, errs.String()
}

// said checks one message: exit code 2, file, place, reason, a remedy, and no trace of a crash.
func said(t *testing.T, code int, text, file, place, want string) {
	t.Helper()
	if code != exitUsage {
		t.Errorf("exit code %d, want %d: %s", code, exitUsage, text)
	}
	if !strings.Contains(text, want) || !strings.Contains(text, file+place) {
		t.Errorf("says %q; want %q and %q", text, file+place, want)
	}
	if strings.Contains(text, "goroutine") || strings.Contains(text, "panic") || strings.Contains(text, "runtime error") {
		t.Errorf("a stack trace: %s", text)
	}
}

var remedyRE = regexp.MustCompile(`^ridgepoint: \S+: .+; .+\n$`)

func spoil(t *testing.T, good, old, new string) string {
	t.Helper()
	if old == "" {
		return good + new + "\n"
	}
	if !strings.Contains(good, old) {
		t.Fatalf("%q is not in the good file", old)
	}
	return strings.Replace(good, old, new, 1)
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	var messages []string // in the order of wants
	var wants []string
	note := func(want, text string) {
		wants = append(wants, want)
		messages = append(messages, text)
	}
	for _, c := range badTasks {
		t.Run("task/"+c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "naive.c", goodKernel)
			write(t, dir, "empty.c", " \n")
			file := write(t, dir, "task.yaml", spoil(t, goodTask, c.old, c.new))
			code, text := complain(t, "check", file)
			said(t, code, text, file, c.place, c.want)
			if !remedyRE.MatchString(text) {
				t.Errorf("not one line with a remedy: %.300q", text)
			}
			note(c.want, text)
		})
	}
	for _, c := range badStructures {
		t.Run("structure/"+c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "naive.c", goodKernel)
			taskFile := write(t, dir, "task.yaml", goodTask)
			name := "bad.c"
			source := goodHeader
			if c.file != "" {
				name = c.file
			} else {
				source = spoil(t, goodHeader, c.old, c.new)
			}
			file := write(t, dir, name, source)
			code, text := complain(t, "eval", taskFile, file)
			said(t, code, text, file, c.place, c.want)
			if !remedyRE.MatchString(text) {
				t.Errorf("not one line with a remedy: %.300q", text)
			}
			note(c.want, text)
		})
	}
	for _, c := range badConfigs {
		t.Run("config/"+c.name, func(t *testing.T) {
			file := write(t, t.TempDir(), "campaign.yaml", c.text)
			code, text := complain(t, "run", file)
			where := file
			if c.place == "" {
				where = ""
			}
			said(t, code, text, where, c.place, c.want)
			note(c.want, text)
		})
	}
	if len(wants) < 40 {
		t.Errorf("%d cases, want at least 40", len(wants))
	}
	for i, want := range wants { // no two are found by the same check
		for k, text := range messages {
			if i != k && strings.Contains(text, want) {
				t.Errorf("%q is also said of another case: %s", want, text)
			}
		}
	}
}

// What is wrong on the command line itself.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "naive.c", goodKernel)
	taskFile := write(t, dir, "task.yaml", goodTask)
	file := write(t, dir, "k.c", goodHeader)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "softmax_3d"}, `did you mean "softmax_2d"?`},
		{[]string{"check", filepath.Join(dir, "none.yaml")}, "no such task"},
		{[]string{"check", taskFile, "--target", "cuda"}, "has no target cuda"},
		{[]string{"check", taskFile, "--target", "tpu"}, `target "tpu" is not known`},
		{[]string{"eval", taskFile, filepath.Join(dir, "none.c")}, "no such file"},
		{[]string{"eval", taskFile, file, "--param", "B=1"}, `has no parameter "B"`},
		{[]string{"eval", taskFile, file, "--param", "A=7"}, "it takes 1, 2"},
		{[]string{"eval", taskFile, file, "--param", "A"}, "write NAME=VALUE"},
		{[]string{"eval", taskFile}, "<file>"},
		{[]string{"calibrate", taskFile, filepath.Join(dir, "none.c")}, "no such file"},
		{[]string{"frobnicate"}, "frobnicate"},
	} {
		t.Run(fmt.Sprint(c.args), func(t *testing.T) {
			t.Parallel()
			code, text := complain(t, c.args...)
			said(t, code, text, "", "", c.want)
		})
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWordsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noKernel := write("k.c", "/* ridgepoint\nlaunch:\n  - {kernel: softmax_a, args: [input, output, rows, cols]}\n*/\nvoid softmax_b(const float *in, float *out, int rows, int cols) {}\n")
	outside := write("task.yaml", "task_name: t\nproblem_shape: {rows: 4, cols: 4, dtype: float32}\nreference: torch.softmax(input, dim=-1)\ntargets: {cpu: {arch: native, baseline: /etc/passwd}}\n")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"run", "--seed", "-1"}, `--seed: want a whole number that is not negative, got "-1"`},
		{[]string{"run", "--seed"}, "--seed: want a whole number after it"},
		{[]string{"eval", "softmax_2d", noKernel}, "k.c:1:1: the file has no function softmax_a; name a function of this file"},
		{[]string{"eval", "softmax_2d", "../../configs/tasks/softmax_2d/naive.c", "--cc", "/nonexistent"}, "--cc: the C compiler /nonexistent is not there"},
		{[]string{"check", outside}, "/etc/passwd lies outside the task's folder"},
	} {
		code, errs := complain(t, tc.args...)
		if code != exitUsage || !strings.Contains(errs, tc.want) || strings.Contains(errs, "root:") {
			t.Errorf("%v: exit code %d, %q; want %d and %q", tc.args, code, errs, exitUsage, tc.want)
		}
	}
	var out bytes.Buffer
	run(t.Context(), environment{getenv: os.Getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &out})
	for _, command := range []string{"run", "resume", "report", "ctl", "doctor"} {
		if !strings.Contains(out.String(), "\n  "+command+" ") {
			t.Errorf("bare ridgepoint does not tell of %s:\n%s", command, out.String())
		}
	}
}
