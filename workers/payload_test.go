package workers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ridgepoint/configs/expr"
	"ridgepoint/harness"
	"ridgepoint/scheduler"
	"ridgepoint/workers"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func testRing(t testing.TB) *workers.Keyring {
	t.Helper()
	ring, err := workers.NewKeyring(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func size(rows, cols int64) harness.Size {
	return harness.Size{{Name: "rows", Value: rows}, {Name: "cols", Value: cols}}
}

func testJob() *scheduler.Job {
	base := &harness.Structure{Name: "naive", Direction: "naive", Target: harness.TargetCUDA, Source: "void naive() {}", Digest: "d1",
		Launches: []harness.Launch{{Kernel: "naive", Grid: []string{"rows"}, Block: []string{"256"}, Args: []string{"input", "output"}}}, Shipped: true}
	s := &harness.Structure{Name: "warp", Direction: "warp-per-row", Target: harness.TargetCUDA, Source: "void warp() {}\n", Digest: "d2",
		Params:   []harness.Param{{Name: "WARPS", Type: "int", Values: []expr.Value{expr.Int(1), expr.Int(2)}}},
		Launches: []harness.Launch{{Kernel: "warp", Grid: []string{"rows"}, Block: []string{"32", "WARPS"}, Args: []string{"input", "output"}}}}
	options := harness.BuildOptions{Arch: "sm_90", MaxRegisters: 128}
	return &scheduler.Job{
		Key: scheduler.TrialKey{Campaign: "softmax_2d-cuda-1f0c", Trial: 12, Attempt: 2}, Scheduler: "5f3a", Purpose: scheduler.PurposeConfirm,
		Request: harness.Request{
			Task: &harness.Task{Name: "softmax_2d", Dims: []string{"rows", "cols"}, Problem: size(8192, 512), Sizes: []harness.Size{size(128, 128)}, Digest: "td",
				Tensors: []harness.Tensor{{Name: "input", Shape: []string{"rows", "cols"}, DType: harness.Float32, Role: harness.RoleIn, AlignmentBytes: 256}},
				Targets: []harness.TargetSpec{{Target: harness.TargetCUDA, Arch: "sm_90"}}},
			Candidate: &harness.Candidate{Structure: s, Configuration: harness.Configuration{"WARPS": expr.Int(2), "PAD": expr.Bool(true)}, Target: harness.TargetCUDA, Options: options},
			Rivals:    []harness.Rival{{Role: "baseline", Candidate: &harness.Candidate{Structure: base, Target: harness.TargetCUDA, Options: options}}},
			Plan:      harness.Plan{Stage: harness.StageConfirm, Seed: 99, Rounds: 7},
		},
		Deadline: time.UnixMilli(1_800_000_060_000), Strikes: 1, Weight: 2, Priority: 1, Avoid: []string{"host1/gpu0"},
	}
}

func testResult() *workers.Result {
	return &workers.Result{Spool: "00112233aabbccdd", Fence: 41, Outcome: scheduler.Outcome{
		Key: scheduler.TrialKey{Campaign: "c", Trial: 3, Attempt: 1}, Final: true, Worker: "host1/77/gpu0", Device: "host1/gpu0", WorkerHeld: 0.25,
		Report: harness.Report{Version: harness.ReportVersion, CandidateID: "abc", Task: "softmax_2d", Target: harness.TargetCUDA, Arch: "sm_90", Fault: harness.FaultNone,
			Stage: harness.StageSearch, Errors: &harness.Errors{MaxAbs: 1e-6, Compared: 10}, Started: time.UnixMilli(1_800_000_000_000).UTC(), Finished: time.UnixMilli(1_800_000_000_250).UTC(),
			Sizes: []harness.SizeTime{{Size: size(128, 128), MedianUS: 5.5, SamplesUS: []float64{5.4, 5.5, 5.6}}}}}}
}

func evaluationHeader(e *workers.Evaluation) workers.Header {
	return workers.Header{Kind: workers.KindCompile, Queue: "compile:cuda:high", TaskID: workers.TaskID(e.Key, workers.KindCompile), Scheduler: e.Scheduler,
		IssuedMS: 1_800_000_000_000, ExpiresMS: 1_800_000_060_000}
}

func place(h workers.Header) workers.Place {
	return workers.Place{Kind: h.Kind, Queue: h.Queue, TaskID: h.TaskID, Now: time.UnixMilli(h.IssuedMS)}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: the wire form changed; old workers refuse it: raise WireVersion, then run with -update (-want +got):\n%s", path, diff)
	}
}

func pack(t testing.TB) (*workers.Evaluation, []workers.Blob) {
	t.Helper()
	j := testJob()
	e, list, err := workers.Pack(j, j.Deadline)
	if err != nil {
		t.Fatal(err)
	}
	return e, list
}

func TestGolden(t *testing.T) {
	t.Parallel()
	e, list := pack(t)
	sealed, err := workers.Seal(testRing(t), evaluationHeader(e), e)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "compile.payload", sealed)
	for i, name := range []string{"task.blob", "structure.blob", "rival.blob"} {
		golden(t, name, list[i].Data)
	}
	e.Build = &harness.Build{Key: "k", Artifact: strings.Repeat("ab", 32), SizeBytes: 10, Toolchain: "nvrtc 13.0", Command: []string{"nvrtc"}}
	e.CompileSeconds, e.QueueSeconds = 0.02, 0.001
	h := evaluationHeader(e)
	h.Kind, h.Queue, h.TaskID = workers.KindGPU, "gpu:sm_90:high", workers.TaskID(e.Key, workers.KindGPU)
	if sealed, err = workers.Seal(testRing(t), h, e); err != nil {
		t.Fatal(err)
	}
	golden(t, "gpu.payload", sealed)
	r := testResult()
	h = workers.Header{Kind: workers.KindOutcome, Queue: "results:5f3a", TaskID: workers.TaskID(r.Outcome.Key, workers.KindOutcome), Scheduler: "5f3a", IssuedMS: 1}
	if sealed, err = workers.Seal(nil, h, r); err != nil {
		t.Fatal(err)
	}
	golden(t, "outcome.payload", sealed)
}

// TestGoldenFieldsCovered fails when a wire struct has a field that no golden payload shows.
func TestGoldenFieldsCovered(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{"gpu.payload": workers.Evaluation{}, "outcome.payload": workers.Result{}, "compile.payload": workers.Header{}} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range reflect.TypeOf(v).NumField() {
			tag, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ",")
			if !bytes.Contains(b, []byte(`"`+tag+`":`)) {
				t.Errorf("%s does not show field %s: set it in the test's payload", name, tag)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	want := testJob()
	e, list := pack(t)
	h := evaluationHeader(e)
	sealed, err := workers.Seal(testRing(t), h, e)
	if err != nil {
		t.Fatal(err)
	}
	var got workers.Evaluation
	if _, err := workers.Open(testRing(t), sealed, place(h), &got); err != nil {
		t.Fatal(err)
	}
	byDigest := map[string][]byte{}
	for _, b := range list {
		byDigest[b.Digest] = b.Data
	}
	for _, d := range got.Digests() {
		if byDigest[d] == nil {
			t.Errorf("no blob for digest %s", d)
		}
	}
	job, err := got.Unpack(decode[harness.Task](byDigest), decode[harness.Structure](byDigest), func(d string) bool { return d == "d1" })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, job, cmp.Comparer(func(a, b expr.Value) bool { return a == b })); diff != "" {
		t.Errorf("job changed on the way (-want +got):\n%s", diff)
	}
	if want.Request.Candidate.ID() != job.Request.Candidate.ID() {
		t.Error("the candidate's id changed on the way")
	}
}

func decode[T any](byDigest map[string][]byte) func(string) (*T, error) {
	return func(d string) (*T, error) {
		v := new(T)
		return v, json.Unmarshal(byDigest[d], v)
	}
}

// TestRefusals is what a stranger with access to Redis may try.
func TestRefusals(t *testing.T) {
	t.Parallel()
	e, _ := pack(t)
	h := evaluationHeader(e)
	sealed := func(ring *workers.Keyring, h workers.Header, body any) []byte {
		b, err := workers.Seal(ring, h, body)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := sealed(testRing(t), h, e)
	other, err := workers.NewKeyring(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(good, []byte{'\n'})
	swap := func(old, new string) []byte { return bytes.Replace(good, []byte(old), []byte(new), 1) }
	at := place(h)
	late := at
	late.Now = time.UnixMilli(h.ExpiresMS + 1)
	elsewhere, renamed, asGPU := at, at, at
	elsewhere.Queue = "compile:cpu"
	renamed.TaskID = "c:1:1:compile"
	asGPU.Kind = workers.KindGPU
	extra := map[string]any{"key": e.Key, "command": "rm -rf /"}
	tests := []struct {
		name    string
		payload []byte
		at      workers.Place
		want    workers.Reason
	}{
		{"good", good, at, ""},
		{"unsigned", sealed(nil, h, e), at, workers.ReasonUnsigned},
		{"another key", sealed(other, h, e), at, workers.ReasonSignature},
		{"key id of ours, mac of another", bytes.Replace(sealed(other, h, e), bytes.Fields(sealed(other, h, e))[1], bytes.Fields(good)[1], 1), at, workers.ReasonSignature},
		{"altered source digest", swap(`"trial":12`, `"trial":13`), at, workers.ReasonSignature},
		{"altered expiry", swap("1800000060000", "1900000060000"), at, workers.ReasonSignature},
		{"altered queue", swap("compile:cuda:high", "compile:cuda:low"), at, workers.ReasonSignature},
		{"mac cut short", bytes.Replace(good, head, head[:len(head)-1], 1), at, workers.ReasonSignature},
		{"empty mac", bytes.Replace(good, head, append(bytes.Clone(head[:bytes.LastIndexByte(head, ' ')+1]), ' '), 1), at, workers.ReasonMalformed},
		{"no mac field", bytes.Replace(good, head, head[:bytes.LastIndexByte(head, ' ')], 1), at, workers.ReasonMalformed},
		{"body appended", append(bytes.Clone(good), " {}"...), at, workers.ReasonSignature},
		{"truncated", good[:len(good)-1], at, workers.ReasonSignature},
		{"expired", good, late, workers.ReasonExpired},
		{"in another queue", good, elsewhere, workers.ReasonMisplaced},
		{"under another id", good, renamed, workers.ReasonMisplaced},
		{"as another kind", good, asGPU, workers.ReasonMisplaced},
		{"version 2", swap("ridgepoint/1 ", "ridgepoint/2 "), at, workers.ReasonVersion},
		{"no frame", []byte(`{"cmd":"sh"}`), at, workers.ReasonMalformed},
		{"empty", nil, at, workers.ReasonMalformed},
		{"binary", bytes.Repeat([]byte{0xff}, 1000), at, workers.ReasonMalformed},
		{"oversized", append(bytes.Clone(good), bytes.Repeat([]byte{' '}, 1<<20)...), at, workers.ReasonTooLarge},
		{"unknown field", sealed(testRing(t), h, extra), at, workers.ReasonMalformed},
		{"body of another type", sealed(testRing(t), h, []int{1}), at, workers.ReasonMalformed},
		{"header only", append(bytes.Clone(head), '\n'), at, workers.ReasonSignature},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var into workers.Evaluation
			_, err := workers.Open(testRing(t), tt.payload, tt.at, &into)
			var r *workers.Refusal
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.As(err, &r) || r.Reason != tt.want {
				t.Fatalf("got %v; want a refusal: %s", err, tt.want)
			}
		})
	}
}

func TestSealRefusesOversize(t *testing.T) {
	t.Parallel()
	e, _ := pack(t)
	e.Avoid = []string{strings.Repeat("x", 1<<20)}
	var r *workers.Refusal
	if _, err := workers.Seal(nil, evaluationHeader(e), e); !errors.As(err, &r) || r.Reason != workers.ReasonTooLarge {
		t.Fatalf("got %v; want a refusal: too_large", err)
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	e, _ := pack(t)
	h := evaluationHeader(e)
	ring := func(text string) *workers.Keyring {
		r, err := workers.ParseKeyFile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sealed, err := workers.Seal(ring("# first signs\n"+a+"\n\n"+b+"\n"), h, e)
	if err != nil {
		t.Fatal(err)
	}
	var into workers.Evaluation
	if _, err := workers.Open(ring(b+"\n"+a), sealed, place(h), &into); err != nil {
		t.Errorf("rotated keys: %v", err)
	}
	if _, err := workers.Open(ring(b), sealed, place(h), &into); err == nil {
		t.Error("a payload of a key that was taken out was accepted")
	}
	for _, bad := range []string{"", "# only a comment", "0a0b", strings.Repeat("zz", 32)} {
		if _, err := workers.ParseKeyFile([]byte(bad)); err == nil || strings.Contains(err.Error(), "zzzz") {
			t.Errorf("key file %.10q: got %v; want an error without key material", bad, err)
		}
	}
}

func TestTaskID(t *testing.T) {
	t.Parallel()
	for _, campaign := range []string{"softmax_2d-cpu-1f", "with:colon", "space and/slash", "ü"} {
		key := scheduler.TrialKey{Campaign: campaign, Trial: 1 << 40, Attempt: 3}
		got, kind, err := workers.ParseTaskID(workers.TaskID(key, workers.KindGPU))
		if err != nil || got != key || kind != workers.KindGPU {
			t.Errorf("%q: got %+v %v %v", campaign, got, kind, err)
		}
	}
	for _, bad := range []string{"", "a:b", "a:1:1:none", ":1:1:gpu", "a:01:1:gpu", "a:1:+1:gpu", "a:1:1:gpu:x"} {
		if _, _, err := workers.ParseTaskID(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	tests := []struct{ got, want string }{
		{workers.CompileQueue(harness.TargetCPU), "compile:cpu"},
		{workers.DeviceQueue(harness.TargetCUDA, "sm_90", nil), "gpu:sm_90"},
		{workers.PriorityQueue("gpu:sm_90", 5), "gpu:sm_90:high"},
		{workers.PriorityQueue("gpu:sm_90", -1), "gpu:sm_90:low"},
		{workers.PriorityQueue("gpu:sm_90", 0), "gpu:sm_90"},
		{workers.ResultsQueue("5f3a"), "results:5f3a"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q; want %q", tt.got, tt.want)
		}
	}
	a := workers.DeviceQueue(harness.TargetCPU, "znver3", []string{"avx2"})
	b := workers.DeviceQueue(harness.TargetCPU, "znver3", []string{"avx2", "fma"})
	if a == b || !strings.HasPrefix(a, "gpu:znver3-") {
		t.Errorf("cpu queues %q and %q: features must tell them apart", a, b)
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	g := workers.NewGuard()
	now := time.UnixMilli(0)
	g.Mark("a", now, now.Add(time.Minute))
	if !g.Done("a") || g.Done("b") {
		t.Error("guard does not know what it marked, or knows what it did not")
	}
	for i := range 1 << 17 { // fills it with live entries, then some
		g.Mark(workers.TaskID(scheduler.TrialKey{Campaign: "c", Trial: int64(i), Attempt: 1}, workers.KindGPU), now.Add(2*time.Minute), now.Add(time.Hour))
	}
	if g.Done("a") {
		t.Error("an expired entry outlived the guard's limit")
	}
	if !g.Done("c:131071:1:gpu") {
		t.Error("a live entry went before an expired one")
	}
}

func FuzzOpen(f *testing.F) {
	e, _ := pack(f)
	h := evaluationHeader(e)
	signed, err := workers.Seal(testRing(f), h, e)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := workers.Seal(nil, h, e)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(signed)
	f.Add(plain)
	f.Add([]byte("ridgepoint/1 - -\n{}\n{}"))
	ring := testRing(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		var into workers.Evaluation
		if _, err := workers.Open(ring, b, place(h), &into); err == nil && !bytes.Equal(b, signed) {
			t.Fatalf("accepted a payload that nobody signed: %q", b)
		}
		var r *workers.Refusal
		got, err := workers.Open(nil, b, place(h), &into)
		if err != nil && !errors.As(err, &r) {
			t.Fatalf("error %v is no refusal", err)
		}
		if err != nil {
			return
		}
		again, err := workers.Seal(nil, got, &into)
		if err != nil {
			t.Fatal(err)
		}
		var second workers.Evaluation
		if _, err := workers.Open(nil, again, place(h), &second); err != nil {
			t.Fatalf("what was accepted once is refused when sealed again: %v", err)
		}
		_, _ = into.Unpack(func(string) (*harness.Task, error) { return &harness.Task{}, nil },
			func(string) (*harness.Structure, error) { return &harness.Structure{}, nil }, nil) // must not panic
	})
}

func FuzzTaskID(f *testing.F) {
	f.Add("softmax_2d-cpu-1f:12:1:gpu")
	f.Add("%3A:1:1:outcome")
	f.Fuzz(func(t *testing.T, id string) {
		key, kind, err := workers.ParseTaskID(id)
		if err == nil && workers.TaskID(key, kind) != id {
			t.Fatalf("%q reads as %+v, which is written %q", id, key, workers.TaskID(key, kind))
		}
	})
}
