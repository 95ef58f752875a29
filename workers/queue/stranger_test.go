package queue

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"ridgepoint/harness"
	"ridgepoint/workers"
	"ridgepoint/workers/redistest"
)

// TestStrangersPayloads pushes payloads as somebody would who reaches Redis but has no key: none is compiled, measured or
// stored, each is parked and counted, and honest work goes on.
func TestStrangersPayloads(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.None)
	h := newScripted()
	n, book, d := fleetOf(t, testConfig(t, srv.URL), Options{}, h, "gpu0")
	dispatch(t, d, 1)
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 1 })

	job := testJob("c1", "s1", 500, 1, 500)
	e, _, err := workers.Pack(job, job.Deadline)
	if err != nil {
		t.Fatal(err)
	}
	compileID := workers.TaskID(job.Key, workers.KindCompile)
	header := func(mod func(*workers.Header)) workers.Header {
		h := workers.Header{Kind: workers.KindCompile, Queue: "compile:cuda", TaskID: compileID, Scheduler: "s1", ExpiresMS: n.Now().Add(time.Hour).UnixMilli()}
		mod(&h)
		return h
	}
	seal := func(ring *workers.Keyring, h workers.Header, body any) []byte {
		b, err := workers.Seal(ring, h, body)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := func(*workers.Header) {}
	ours, strange := n.cfg.Keyring, workers.RandomKeyring()
	signed := seal(ours, header(same), e)
	outcome := workers.Result{}
	outcome.Outcome.Key, outcome.Outcome.Final, outcome.Outcome.Report.Fault = job.Key, true, harness.FaultNone
	outcomeHeader := header(func(h *workers.Header) {
		h.Kind, h.Queue, h.TaskID = workers.KindOutcome, "results:s1", workers.TaskID(job.Key, workers.KindOutcome)
	})
	gpuHeader := header(func(h *workers.Header) {
		h.Kind, h.Queue, h.TaskID = workers.KindGPU, "gpu:sm_90", workers.TaskID(job.Key, workers.KindGPU)
	})
	tests := []struct {
		name, queue, id string
		payload         []byte
	}{
		{"unsigned compile", "compile:cuda", compileID, seal(nil, header(same), e)},
		{"foreign key", "compile:cuda", compileID, seal(strange, header(same), e)},
		{"altered body", "compile:cuda", compileID, bytes.Replace(signed, []byte(`"seed":500`), []byte(`"seed":501`), 1)},
		{"altered header", "compile:cuda", compileID, bytes.Replace(signed, []byte(`"scheduler":"s1"`), []byte(`"scheduler":"s2"`), 1)},
		{"stripped signature", "compile:cuda", compileID, append([]byte("ridgepoint/1 - -\n"), signed[bytes.IndexByte(signed, '\n')+1:]...)},
		{"key id without mac", "compile:cuda", compileID, append([]byte("ridgepoint/1 "+strings.Fields(string(signed))[1]+" -\n"), signed[bytes.IndexByte(signed, '\n')+1:]...)},
		{"replayed under another id", "compile:cuda", "c1:501:1:compile", signed},
		{"replayed in another queue", "compile:cuda:high", compileID, signed},
		{"expired", "compile:cuda", compileID, seal(ours, header(func(h *workers.Header) { h.ExpiresMS = 1 }), e)},
		{"later version", "compile:cuda", compileID, bytes.Replace(signed, []byte("ridgepoint/1"), []byte("ridgepoint/9"), 1)},
		{"empty", "compile:cuda", compileID, nil},
		{"zeros", "compile:cuda", compileID, make([]byte, 4096)},
		{"json command", "compile:cuda", compileID, []byte(`{"cmd":["sh","-c","id"]}`)},
		{"oversized", "compile:cuda", compileID, bytes.Repeat([]byte{'a'}, 2<<20)},
		{"unsigned measurement", "gpu:sm_90", gpuHeader.TaskID, seal(nil, gpuHeader, e)},
		{"measurement of a foreign key", "gpu:sm_90", gpuHeader.TaskID, seal(strange, gpuHeader, e)},
		{"compile payload as measurement", "gpu:sm_90", compileID, signed},
		{"deep nesting", "gpu:sm_90", gpuHeader.TaskID, append([]byte("ridgepoint/1 - -\n{}\n"), bytes.Repeat([]byte("["), 100_000)...)},
		{"unsigned outcome", "results:s1", outcomeHeader.TaskID, seal(nil, outcomeHeader, outcome)},
		{"outcome of a foreign key", "results:s1", outcomeHeader.TaskID, seal(strange, outcomeHeader, outcome)},
		{"another body under a signed id", "results:s1", outcomeHeader.TaskID, bytes.Replace(seal(ours, outcomeHeader, outcome), []byte(`"trial":500`), []byte(`"trial":502`), 2)},
		{"not an id of ours", "compile:cuda", "x", signed},
	}
	client := asynq.NewClientFromRedisClient(srv.Client())
	for i, tt := range tests {
		if _, err := client.Enqueue(asynq.NewTask("compile", tt.payload), asynq.Queue(tt.queue), asynq.TaskID(tt.id)); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		waitFor(t, 30*time.Second, fmt.Sprintf("refused: %s", tt.name), func() bool { return n.refused.Load() == int64(i+1) })
		waitFor(t, 30*time.Second, "parked with its reason: "+tt.name, func() bool {
			info, err := n.inspector().GetTaskInfo(tt.queue, tt.id)
			return err == nil && info.State == asynq.TaskStateArchived && strings.Contains(info.LastErr, "refused")
		})
		if err := n.inspector().DeleteTask(tt.queue, tt.id); err != nil { // make room for the next under the same id
			t.Fatal(err)
		}
	}
	if h.compiled.Load() != 1 || h.measured.Load() != 1 {
		t.Errorf("%d compiled and %d measured; want the one honest candidate", h.compiled.Load(), h.measured.Load())
	}
	if final, others := book.count(); final != 1 || others != 0 {
		t.Errorf("%d and %d outcomes stored; want 1", final, others)
	}
	// A payload that was finished, played again with its done mark deleted: this process remembers.
	done := workers.TaskID(testJob("c1", "s1", 0, 1, 0).Key, workers.KindCompile)
	again := seal(ours, header(func(h *workers.Header) { h.TaskID = done }), mustPack(t))
	if err := srv.Client().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(asynq.NewTask("compile", again), asynq.Queue("compile:cuda"), asynq.TaskID(done)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 30*time.Second, "found done", func() bool { return n.repeated.Load() == 1 })
	if h.compiled.Load() != 1 {
		t.Error("a replayed payload was compiled again")
	}
	dispatch(t, d, 3) // trial 0 is known; 1 and 2 are new
	book.await(t, 30*time.Second, func(final, _ int) bool { return final == 3 })
}

func mustPack(t *testing.T) *workers.Evaluation {
	t.Helper()
	j := testJob("c1", "s1", 0, 1, 0)
	e, _, err := workers.Pack(j, j.Deadline)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
