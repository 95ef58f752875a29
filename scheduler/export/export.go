// Package export writes a campaign's winner as files that stand on their own: the source with its parameters baked in, its
// launch plan as comments and as JSON, the baseline, and a driver in C or CUDA that checks and times both without Ridgepoint.
// It computes no winner and runs nothing.
package export

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/template"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
	"ridgepoint/harness/verify"
	"ridgepoint/scheduler"
)

//go:embed driver.tmpl
var templates embed.FS

// ErrUnsupported says that a winner cannot be driven by a standalone driver.
var ErrUnsupported = errors.New("no standalone driver can be written")

// ExpectedFunc computes a task's outputs in float64 from its inputs, both in row-major order by tensor name.
type ExpectedFunc func(ctx context.Context, t *harness.Task, size harness.Size, inputs map[string][]float64) (map[string][]float64, error)

// Winner is what is exported.
type Winner struct {
	Campaign  *scheduler.Campaign
	Candidate *harness.Candidate
	Result    *scheduler.Winner
	Command   []string // that built it, as recorded
}

// File is one file of an export.
type File struct {
	Name string // slash-separated, relative to the export's folder
	Data []byte
}

// checkBytes bounds the data of one size that is checked against the float64 reference; larger sizes are checked against
// the baseline.
const checkBytes = 4 << 20

// Files makes the files of an export.
func Files(ctx context.Context, w *Winner, expected ExpectedFunc) ([]File, error) {
	d, err := newDriver(w)
	if err != nil {
		return nil, err
	}
	plan, err := json.MarshalIndent(d.plan(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the launch plan: %w", err)
	}
	files := []File{
		{"winner" + d.Ext, []byte(d.source())},
		{"baseline" + d.Ext, []byte(baked(w.Campaign.Baseline))},
		{"plan.json", append(plan, '\n')},
	}
	if len(w.Candidate.Structure.TensorMaps) > 0 || w.Candidate.Target == harness.TargetHIP {
		return files, nil // Driver reports why there is none
	}
	for i := range d.Sizes {
		data, err := d.data(ctx, i, expected)
		if err != nil {
			return nil, err
		}
		files = append(files, data...)
	}
	tmpl, err := template.New("driver.tmpl").Funcs(template.FuncMap{"quote": func(s string) string { return fmt.Sprintf("%q", s) }}).ParseFS(templates, "driver.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse the driver's template: %w", err)
	}
	for _, part := range []string{"driver", "winner_launch", "baseline_launch"} {
		var b bytes.Buffer
		if err := tmpl.ExecuteTemplate(&b, part, d); err != nil {
			return nil, fmt.Errorf("write %s: %w", part, err)
		}
		files = append(files, File{part + d.Ext, b.Bytes()})
	}
	return files, nil
}

// Driver reports whether Files writes a driver; when not, the error wraps ErrUnsupported and says why.
func Driver(c *harness.Candidate) error {
	switch {
	case len(c.Structure.TensorMaps) > 0:
		return fmt.Errorf("%w: the launch takes tensor maps, which only the harness encodes", ErrUnsupported)
	case c.Target == harness.TargetHIP:
		return fmt.Errorf("%w for hip", ErrUnsupported)
	default:
		return nil
	}
}

// driver is the data of the templates.
type driver struct {
	w        *Winner
	Ext      string // .c or .cu
	CUDA     bool
	Task     string
	Campaign string
	ATol     float64
	RTol     float64
	Build    string // the command line
	Tensors  []tensor
	Sizes    []size
	Winner   side
	Baseline side
}

type tensor struct {
	Name, DType, C, Role string
}

type size struct {
	Name     string
	Elements []int64
	Data     bool // there are files with inputs and expected outputs
	dims     harness.Size
}

// side is the winner or the baseline.
type side struct {
	Prefix    string // winner or baseline
	Kernels   []string
	Workspace []tensor
	Launches  [][]launch // by size
	Bytes     [][]int64  // of the workspace, by size
	Zero      []bool     // of the workspace: cleared before every launch
}

// Upper is the side's name in capitals.
func (s side) Upper() string { return strings.ToUpper(s.Prefix) }

// Scratch is how many scratch buffers the side has.
func (s side) Scratch() int { return len(s.Workspace) }

// Sides are the winner and the baseline.
func (d *driver) Sides() []side { return []side{d.Winner, d.Baseline} }

// MaxScratch is the larger number of scratch buffers.
func (d *driver) MaxScratch() int { return max(len(d.Winner.Workspace), len(d.Baseline.Workspace)) }

// launchFile is the data of one side's launch file.
type launchFile struct {
	Ext  string
	CUDA bool
	Side side
}

// LaunchOf returns the data of a side's launch file.
func (d *driver) LaunchOf(prefix string) launchFile {
	if prefix == "winner" {
		return launchFile{d.Ext, d.CUDA, d.Winner}
	}
	return launchFile{d.Ext, d.CUDA, d.Baseline}
}

// launch is one launch at one size, as C text.
type launch struct {
	Kernel                string
	Args                  []string
	Types                 []string
	Grid, Block, Cluster  [3]int64
	SharedBytes           int64
	Cooperative, Clusters bool
}

func newDriver(w *Winner) (*driver, error) {
	c, t := w.Candidate, w.Campaign.Task
	d := &driver{w: w, Ext: ".c", CUDA: c.Target == harness.TargetCUDA, Task: t.Name, Campaign: w.Campaign.ID, ATol: t.Eval.ATol, RTol: t.Eval.RTol}
	if c.Target != harness.TargetCPU {
		d.Ext = ".cu"
	}
	d.Build = d.build()
	for _, x := range t.Tensors {
		d.Tensors = append(d.Tensors, tensor{Name: x.Name, DType: x.DType.String(), C: d.ctype(x.DType), Role: x.Role.String()})
	}
	d.Winner.Prefix, d.Baseline.Prefix = "winner", "baseline"
	for _, s := range w.Campaign.Sizes() {
		extents, err := task.Shapes(t, s)
		if err != nil {
			return nil, err
		}
		row := size{Name: s.String(), dims: s}
		for _, e := range extents {
			row.Elements = append(row.Elements, e.Span)
		}
		d.Sizes = append(d.Sizes, row)
		if err := d.add(&d.Winner, c, s); err != nil {
			return nil, err
		}
		if err := d.add(&d.Baseline, w.Campaign.Baseline, s); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// add plans one side at one size.
func (d *driver) add(s *side, c *harness.Candidate, at harness.Size) error {
	p, err := task.Plan(d.w.Campaign.Task, c.Structure, c.Configuration, at)
	if err != nil {
		return fmt.Errorf("plan %s at %s: %w", s.Prefix, at, err)
	}
	first := len(s.Launches) == 0
	var bytes []int64
	for _, e := range p.Workspace {
		bytes = append(bytes, e.Bytes())
		if first {
			s.Workspace, s.Zero = append(s.Workspace, tensor{Name: e.Name, C: d.ctype(e.DType)}), append(s.Zero, e.Init == "zero")
		}
	}
	var list []launch
	for _, l := range p.Launches {
		out := launch{Kernel: l.Kernel, Grid: l.Grid, Block: l.Block, Cluster: l.Cluster, SharedBytes: l.SharedBytes, Cooperative: l.Cooperative, Clusters: l.Cluster[0] > 0}
		for _, a := range l.Args {
			text, typ := d.arg(a)
			out.Args, out.Types = append(out.Args, text), append(out.Types, typ)
		}
		list = append(list, out)
		if !contains(s.Kernels, l.Kernel) {
			s.Kernels = append(s.Kernels, l.Kernel)
		}
	}
	s.Launches, s.Bytes = append(s.Launches, list), append(s.Bytes, bytes)
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// arg writes an argument as C.
func (d *driver) arg(a task.Arg) (text, typ string) {
	switch a.Kind {
	case task.ArgTensor:
		return fmt.Sprintf("(%s *)t[%d]", d.Tensors[a.Index].C, a.Index), d.Tensors[a.Index].C + " *"
	case task.ArgWorkspace:
		return fmt.Sprintf("(%s *)w[%d]", d.ctype(a.DType), a.Index), d.ctype(a.DType) + " *"
	case task.ArgInt:
		if a.DType == harness.Int64 {
			return fmt.Sprintf("%dLL", a.Int), "long long"
		}
		return fmt.Sprint(a.Int), "int"
	default: // a scalar: tensor maps have no driver
		typ = d.ctype(a.DType)
		return fmt.Sprintf("(%s)%s", typ, floatText(a.Scalar)), typ
	}
}

func floatText(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.17g", f)
}

func (d *driver) ctype(t harness.DType) string {
	switch t {
	case harness.Float64:
		return "double"
	case harness.Float32:
		return "float"
	case harness.Int64:
		return "long long"
	case harness.Int32:
		return "int"
	case harness.Int8:
		return "signed char"
	case harness.Float16:
		if d.CUDA {
			return "__half"
		}
		return "_Float16"
	case harness.BFloat16:
		if d.CUDA {
			return "__nv_bfloat16"
		}
		return "unsigned short"
	default:
		return "unsigned char"
	}
}

// build is the command line that compiles and runs the driver.
func (d *driver) build() string {
	o := d.w.Candidate.Options
	if d.CUDA {
		flags := []string{"nvcc -O3 -arch=" + o.Arch}
		if o.MaxRegisters > 0 {
			flags = append(flags, fmt.Sprintf("-maxrregcount=%d", o.MaxRegisters))
		}
		if o.FastMath {
			flags = append(flags, "-use_fast_math")
		}
		if o.Std != "" {
			flags = append(flags, "-std="+o.Std)
		}
		return strings.Join(append(append(flags, o.Flags...), "driver.cu winner_launch.cu baseline_launch.cu -o driver && ./driver"), " ")
	}
	flags := []string{"cc -O3"}
	keep := func(flag string) bool {
		return strings.HasPrefix(flag, "-march") || strings.HasPrefix(flag, "-m") || strings.HasPrefix(flag, "-std") || flag == "-fopenmp" || flag == "-ffast-math" || contains(o.Flags, flag)
	}
	for _, flag := range d.w.Command {
		if keep(flag) {
			flags = append(flags, flag)
		}
	}
	return strings.Join(append(flags, "driver.c winner_launch.c baseline_launch.c -lm -o driver && ./driver"), " ")
}

// source is the winning source with its parameters as macros and its launch plan as comments.
func (d *driver) source() string {
	var b strings.Builder
	c, r := d.w.Candidate, d.w.Result
	fmt.Fprintf(&b, "/* %s: the winner of campaign %s.\n *\n * structure %s, candidate %s\n", d.Task, d.Campaign, c.Structure.Name, c.ID())
	if r != nil {
		fmt.Fprintf(&b, " * %.2f times the baseline when confirmed, %.2f when replayed (95 %% between %.2f and %.2f)\n", r.Speedup, r.ReplayedSpeedup, r.Interval[0], r.Interval[1])
	}
	fmt.Fprintf(&b, " * build: %s\n *\n * Launch plan, in order:\n", d.Build)
	for i, s := range d.Sizes {
		for _, l := range d.Winner.Launches[i] {
			fmt.Fprintf(&b, " *   %s: %s", s.Name, l.Kernel)
			if d.CUDA {
				fmt.Fprintf(&b, "<<<(%d, %d, %d), (%d, %d, %d), %d>>>", l.Grid[0], l.Grid[1], l.Grid[2], l.Block[0], l.Block[1], l.Block[2], l.SharedBytes)
			}
			fmt.Fprintf(&b, "(%s)\n", strings.Join(l.Args, ", "))
		}
	}
	fmt.Fprintf(&b, " * where t[] are %s", names(d.Tensors))
	if len(d.Winner.Workspace) > 0 {
		fmt.Fprintf(&b, " and w[] is scratch memory: %s", names(d.Winner.Workspace))
	}
	b.WriteString(". */\n\n")
	b.WriteString(baked(c))
	return b.String()
}

// baked is a candidate's source with its parameters as macros in front.
func baked(c *harness.Candidate) string {
	var b strings.Builder
	for _, m := range task.Macros(c.Structure, c.Configuration) {
		name, value, _ := strings.Cut(m, "=")
		fmt.Fprintf(&b, "#define %s %s\n", name, value)
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String() + c.Structure.Source
}

func names(list []tensor) string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = t.Name
	}
	return strings.Join(out, ", ")
}

// planned is plan.json.
type planned struct {
	Task          string                `json:"task"`
	Campaign      string                `json:"campaign"`
	Candidate     string                `json:"candidate"`
	Structure     string                `json:"structure"`
	Configuration harness.Configuration `json:"configuration"`
	Options       harness.BuildOptions  `json:"options"`
	Build         string                `json:"build"`
	Launches      []harness.Launch      `json:"launches"` // as expressions over dims and parameters
	Workspace     []harness.Buffer      `json:"workspace,omitempty"`
	TensorMaps    []harness.TensorMap   `json:"tensor_maps,omitempty"`
	Sizes         []plannedSize         `json:"sizes"` // the same in numbers
}

type plannedSize struct {
	Size     harness.Size  `json:"size"`
	Launches []task.Launch `json:"launches"`
}

func (d *driver) plan() planned {
	c := d.w.Candidate
	p := planned{Task: d.Task, Campaign: d.Campaign, Candidate: c.ID(), Structure: c.Structure.Name, Configuration: c.Configuration, Options: c.Options, Build: d.Build,
		Launches: c.Structure.Launches, Workspace: c.Structure.Workspace, TensorMaps: c.Structure.TensorMaps}
	for _, s := range d.Sizes {
		if l, err := task.Plan(d.w.Campaign.Task, c.Structure, c.Configuration, s.dims); err == nil { // planned before
			p.Sizes = append(p.Sizes, plannedSize{Size: s.dims, Launches: l.Launches})
		}
	}
	return p
}

// data makes the inputs and expected outputs of a size, when they are small enough and laid out without gaps.
func (d *driver) data(ctx context.Context, i int, expected ExpectedFunc) ([]File, error) {
	s, t := &d.Sizes[i], d.w.Campaign.Task
	extents, err := task.Shapes(t, s.dims)
	if err != nil {
		return nil, err
	}
	var total int64
	for _, e := range extents {
		total += 8 * e.Elements
		if e.Span != e.Elements {
			return nil, nil
		}
	}
	if total > checkBytes || expected == nil {
		return nil, nil
	}
	raw, values, err := verify.Generate(extents, verify.Spec{Distribution: verify.Plain, Seed: d.w.Campaign.Seed})
	if err != nil {
		return nil, err
	}
	inputs := map[string][]float64{}
	var files []File
	for k, e := range extents {
		if values[k] != nil {
			inputs[e.Name] = values[k]
			files = append(files, File{fmt.Sprintf("data/%d_%s.in", i, e.Name), raw[k]})
		}
	}
	outputs, err := expected(ctx, t, s.dims, inputs)
	if err != nil {
		return nil, fmt.Errorf("expected outputs at %s: %w", s.Name, err)
	}
	for _, e := range extents {
		if e.Role == harness.RoleIn {
			continue
		}
		var b bytes.Buffer
		_ = binary.Write(&b, binary.LittleEndian, outputs[e.Name]) // a buffer takes every write
		files = append(files, File{fmt.Sprintf("data/%d_%s.expected", i, e.Name), b.Bytes()})
	}
	s.Data = true
	return files, nil
}
