package queue

import (
	"testing"

	"ridgepoint/workers"
	"ridgepoint/workers/redistest"
)

// TestEnqueueSaysThatRedisIsAway shows that an enqueue which a lost Redis refused says so, although asynq keeps only the words, and
// also when Redis is back by the time it is looked at.
func TestEnqueueSaysThatRedisIsAway(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.AOF)
	n := startNode(t, testConfig(t, srv.URL), Options{})
	key := mustKeys(1)[0]
	h := workers.Header{Kind: workers.KindOutcome, Queue: workers.ResultsQueue("s1"), TaskID: workers.TaskID(key, workers.KindOutcome), Scheduler: "s1"}
	if err := n.enqueue(t.Context(), h, struct{}{}); err != nil {
		t.Fatal(err)
	}
	srv.Kill()
	h.TaskID = workers.TaskID(mustKeys(2)[0], workers.KindOutcome)
	err := n.enqueue(t.Context(), h, struct{}{})
	srv.Restart()
	if err == nil || !isAway(err) {
		t.Errorf("an enqueue without Redis: %v; want an error that says that Redis is away", err)
	}
	if err := n.enqueue(t.Context(), h, struct{}{}); err != nil {
		t.Errorf("with Redis again: %v", err)
	}
}
