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

func TestCapacity(t *testing.T) {
	t.Parallel()
	device := fleet.Device{Queues: []string{"q"}, State: fleet.StateWorking}
	members := func(slots int, campaigns ...fleet.Campaign) []fleet.Member {
		m := fleet.Member{State: fleet.StateWorking, Campaigns: campaigns}
		for range slots {
			m.Devices = append(m.Devices, device)
		}
		return []fleet.Member{m}
	}
	other := func(weight float64, priority int) fleet.Campaign {
		return fleet.Campaign{ID: "other", Queue: "q", Weight: weight, Priority: priority}
	}
	for name, c := range map[string]struct {
		slots    int
		others   []fleet.Campaign
		weight   float64
		priority int
		want     int
	}{
		"alone":                       {4, nil, 1, 0, 4},
		"alone, no device yet":        {0, nil, 1, 0, 1},
		"itself in the book":          {4, []fleet.Campaign{{ID: "own", Queue: "q", Weight: 7}}, 1, 0, 4},
		"another queue's":             {4, []fleet.Campaign{{ID: "other", Queue: "r", Weight: 7}}, 1, 0, 4},
		"evenly":                      {4, []fleet.Campaign{other(1, 0)}, 1, 0, 2},
		"evenly on one device":        {1, []fleet.Campaign{other(1, 0)}, 1, 0, 1},
		"three times as much":         {4, []fleet.Campaign{other(1, 0)}, 3, 0, 3},
		"a third as much":             {4, []fleet.Campaign{other(3, 0)}, 1, 0, 1},
		"three quarters of a device":  {1, []fleet.Campaign{other(1, 0)}, 3, 0, 3},
		"a quarter of a device":       {1, []fleet.Campaign{other(3, 0)}, 1, 0, 1},
		"two thirds of four":          {4, []fleet.Campaign{other(1, 0)}, 2, 0, 4},
		"one third of four":           {4, []fleet.Campaign{other(2, 0)}, 1, 0, 2},
		"a hundred times as much":     {2, []fleet.Campaign{other(0.01, 0)}, 1, 0, 16},
		"many devices are rounded":    {32, []fleet.Campaign{other(1, 0)}, 2, 0, 21},
		"lower ones do not count":     {4, []fleet.Campaign{other(9, -1)}, 1, 0, 4},
		"higher ones do not count":    {4, []fleet.Campaign{other(9, 1)}, 1, 0, 4},
		"one queue for all above 0":   {4, []fleet.Campaign{other(1, 5)}, 1, 1, 2},
		"an entry without any weight": {4, []fleet.Campaign{other(0, 0)}, 1, 0, 4},
	} {
		if got := fleet.Capacity(members(c.slots, c.others...), "q", "own", c.weight, c.priority); got != c.want {
			t.Errorf("%s: %d; want %d", name, got, c.want)
		}
	}
}
