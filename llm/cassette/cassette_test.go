package cassette_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridgepoint/llm"
	"ridgepoint/llm/cassette"
)

const plantedKey = "sk-planted-0123456789"

// answers replies to each request with its first message and shows a key.
type answers struct{ fail bool }

func (a answers) Complete(_ context.Context, r *llm.Request) (*llm.Reply, error) {
	if a.fail {
		return nil, &llm.Error{Kind: llm.KindAuth, Model: "m", Reason: "key " + plantedKey + " is wrong"}
	}
	return &llm.Reply{Text: "re " + r.Messages[0].Text + " " + plantedKey, Model: "m", CostMicroUSD: 5}, nil
}

func ask(id, text string) *llm.Request {
	return &llm.Request{ID: id, For: llm.Author, Messages: []llm.Message{{Role: llm.User, Text: text}}}
}

func TestRecordAndPlay(t *testing.T) {
	t.Parallel()
	var tape bytes.Buffer
	scrub := llm.NewScrubber(llm.NewSecret(plantedKey))
	recorder := cassette.NewRecorder(answers{}, &tape, scrub)
	for _, r := range []*llm.Request{ask("1", "one "+plantedKey), ask("2", "two"), ask("3", "three")} {
		if _, err := recorder.Complete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	failing := cassette.NewRecorder(answers{fail: true}, &tape, scrub)
	if _, err := failing.Complete(t.Context(), ask("4", "four")); err == nil {
		t.Fatal("want the client's error")
	}
	if strings.Contains(tape.String(), plantedKey) || !strings.Contains(tape.String(), `"kind":"auth"`) {
		t.Fatalf("the tape shows the key or lacks the error: %s", tape.String())
	}
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	if err := os.WriteFile(path, append(tape.Bytes(), `{"version":1,"torn`...), 0o600); err != nil {
		t.Fatal(err)
	}
	player, err := cassette.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ id, text, want string }{
		{"9", "three", "re three [secret]"},                      // same prompt
		{"1", "one, said otherwise", "re one [secret] [secret]"}, // same id
		{"8", "something else", "re two [secret]"},               // what is left
	} {
		reply, err := player.Complete(t.Context(), ask(tc.id, tc.text))
		if err != nil || reply.Text != tc.want || reply.CostMicroUSD != 0 {
			t.Errorf("played %+v, %v; want %q for nothing", reply, err, tc.want)
		}
	}
	if _, err := player.Complete(t.Context(), ask("5", "five")); !errors.Is(err, llm.ErrNoMore) {
		t.Errorf("err = %v, want ErrNoMore", err)
	}
}

func TestSkipAndVersions(t *testing.T) {
	t.Parallel()
	exchanges := []*cassette.Exchange{
		cassette.New(ask("1", "a"), &llm.Reply{Text: "A"}, nil, llm.Scrubber{}), cassette.New(ask("2", "b"), &llm.Reply{Text: "B"}, nil, llm.Scrubber{})}
	player := cassette.NewPlayer(exchanges)
	player.Skip(map[string]bool{"1": true})
	if reply, err := player.Complete(t.Context(), ask("7", "z")); err != nil || reply.Text != "B" {
		t.Errorf("after Skip: %+v, %v; want B", reply, err)
	}
	if _, err := cassette.Read(strings.NewReader("{\"version\":99}\n")); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("Read of a later version: %v", err)
	}
}
