package fleet_test

import (
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"ridgepoint/workers/fleet"
	"ridgepoint/workers/redistest"
)

func carriers(t *testing.T, f func(t *testing.T, c *redis.Client)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = c.Close() })
		f(t, c)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, redistest.Start(t, redistest.None).Client())
	})
}

func member(id, host string) *fleet.Member {
	return &fleet.Member{ID: id, Host: host, PID: 1, Kinds: []string{"gpu"}, Queues: []string{"gpu:sm_90"}, State: fleet.StateWorking, Tasks: []string{"c:1:1:gpu"},
		Devices: []fleet.Device{{ID: "gpu0", Arch: "sm_90", Queues: []string{"gpu:sm_90"}, State: fleet.StateWorking}}}
}

func TestBeat(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c *redis.Client) {
		ctx, r := t.Context(), fleet.NewRegistry(c)
		a, err := r.Beat(ctx, member("a", "host1"), "spool1", "epoch1")
		if err != nil {
			t.Fatal(err)
		}
		if a.Epoch != "epoch1" || a.Drain || len(a.Wanted) != 0 || len(a.Acked) != 0 || time.Since(a.Now).Abs() > time.Minute {
			t.Errorf("first answer %+v", a)
		}
		if err := r.Acknowledge(ctx, map[string][]string{"spool1": {"x", "y"}, "spool2": {"z"}}); err != nil {
			t.Fatal(err)
		}
		if err := r.Want(ctx, "digest"); err != nil {
			t.Fatal(err)
		}
		if err := r.Drain(ctx, "host1", true); err != nil {
			t.Fatal(err)
		}
		if a, err = r.Beat(ctx, member("a", "host1"), "spool1", "epoch2"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"x", "y"}, a.Acked); diff != "" || a.Epoch != "epoch1" || !a.Drain || !slices.Equal(a.Wanted, []string{"digest"}) {
			t.Errorf("second answer %+v", a)
		}
		if err := r.Published(ctx, "digest"); err != nil {
			t.Fatal(err)
		}
		if err := r.Drain(ctx, "host1", false); err != nil {
			t.Fatal(err)
		}
		if a, err = r.Beat(ctx, member("a", "host1"), "spool1", "epoch2"); err != nil || len(a.Acked) != 0 || a.Drain || len(a.Wanted) != 0 {
			t.Errorf("third answer %+v %v: acknowledgements come once, the drain was taken back", a, err)
		}
		if err := c.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if a, err = r.Beat(ctx, member("a", "host1"), "", "epoch3"); err != nil || a.Epoch != "epoch3" {
			t.Errorf("after the data was lost: %+v %v; want a new epoch", a, err)
		}
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, c *redis.Client) {
		ctx, r := t.Context(), fleet.NewRegistry(c)
		for _, m := range []*fleet.Member{member("b", "host2"), member("a", "host1")} {
			if _, err := r.Beat(ctx, m, "", "e"); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.ZIncrBy(ctx, "{ridgepoint}:fleet", -60_000, "b").Err(); err != nil { // b was last seen a minute ago
			t.Fatal(err)
		}
		all, _, err := r.List(ctx, 0)
		if err != nil || len(all) != 2 || all[0].ID != "a" {
			t.Fatalf("got %+v %v; want a, then b", all, err)
		}
		if all[1].State != fleet.StateGone || all[1].Tasks != nil || all[1].AgeMS < 60_000 {
			t.Errorf("b was seen a minute ago and shows %+v", all[1])
		}
		live, _, err := r.List(ctx, fleet.Live)
		if err != nil || len(live) != 1 || live[0].State != fleet.StateWorking {
			t.Errorf("live: %+v %v; want a alone", live, err)
		}
		if fleet.Slots(all, "gpu:sm_90") != 1 {
			t.Error("slots of the dead count")
		}
		if fleet.Others(all, "gpu:sm_90", []string{"host1/gpu0"}) || !fleet.Others(all, "gpu:sm_90", []string{"host9/gpu0"}) {
			t.Error("others: the dead count, or the avoided do")
		}
		if err := r.Leave(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if all, _, err = r.List(ctx, 0); err != nil || len(all) != 1 {
			t.Errorf("after a left: %+v %v", all, err)
		}
	})
}

func TestShare(t *testing.T) {
	t.Parallel()
	members := []fleet.Member{{Campaigns: []fleet.Campaign{{ID: "one", Queue: "q", Weight: 3}, {ID: "two", Queue: "q", Weight: 1}, {ID: "low", Queue: "q", Weight: 9, Priority: -1}, {ID: "else", Queue: "r", Weight: 9}}}}
	for _, tt := range []struct {
		id       string
		weight   float64
		priority int
		want     float64
	}{{"one", 3, 0, 0.75}, {"two", 1, 0, 0.25}, {"low", 9, -1, 1}, {"new", 4, 0, 0.5}} {
		if got := fleet.Share(members, "q", tt.id, tt.weight, tt.priority); got != tt.want {
			t.Errorf("%s: share %v; want %v", tt.id, got, tt.want)
		}
	}
}
