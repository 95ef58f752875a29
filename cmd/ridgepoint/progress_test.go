package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// What takes long is said again and again, with how long it has taken; what is quick is not said at all.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		say, quiet := progressTo(&b)
		say("quick")
		time.Sleep(time.Second)
		say("slow")
		time.Sleep(6500 * time.Millisecond)
		quiet()
		quiet()
		if got, want := b.String(), "... slow (2s)\n... slow (5s)\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
