package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progressEvery is how long a person waits without a word.
const progressEvery = 3 * time.Second

// progressTo tells a person on w what takes long. say is called with what is done next; while nothing else is said, a line with it
// and the time it has taken so far appears every progressEvery. quiet ends that.
func progressTo(w io.Writer) (say func(what string), quiet func()) {
	var mu sync.Mutex // guards what and begin
	what, begin := "", time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				mu.Lock()
				text, took := what, now.Sub(begin)
				mu.Unlock()
				if text != "" {
					_, _ = fmt.Fprintf(w, "... %s (%s)\n", text, took.Round(time.Second)) // a note to a person
				}
			}
		}
	}()
	say = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		what, begin = text, time.Now()
	}
	return say, sync.OnceFunc(func() {
		close(done)
		<-ended
	})
}
