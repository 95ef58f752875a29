// Package cassette records exchanges with models, and plays them back in the models' place. A cassette is a file of JSON lines,
// one exchange each; it holds no keys.
package cassette

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"ridgepoint/llm"
)

// Version is the version of Exchange's JSON form.
const Version = 1

// Exchange is one request with what came of it: a reply, or an error.
type Exchange struct {
	Version int          `json:"version"`
	Hash    string       `json:"hash"` // Request.Hash
	Request *llm.Request `json:"request"`
	Reply   *llm.Reply   `json:"reply,omitempty"`
	Error   string       `json:"error,omitempty"`
	Kind    string       `json:"kind,omitempty"` // of the error
}

// Recorder passes requests to a client and writes each exchange as one line.
type Recorder struct {
	client llm.Client
	scrub  llm.Scrubber

	mu  sync.Mutex
	out io.Writer
}

// NewRecorder records what client answers into out, with keys removed.
func NewRecorder(client llm.Client, out io.Writer, scrub llm.Scrubber) *Recorder {
	return &Recorder{client: client, out: out, scrub: scrub}
}

// Complete asks the client and writes the exchange, before it returns the reply. Cancelled calls are not written.
func (r *Recorder) Complete(ctx context.Context, request *llm.Request) (*llm.Reply, error) {
	reply, err := r.client.Complete(ctx, request)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	if werr := r.write(New(request, reply, err, r.scrub)); werr != nil {
		return nil, errors.Join(err, werr)
	}
	return reply, err
}

func (r *Recorder) write(e *Exchange) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("record exchange: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record exchange: %w", err)
	}
	return nil
}

// New makes the exchange of a finished call, with keys removed from every text in it.
func New(request *llm.Request, reply *llm.Reply, err error, scrub llm.Scrubber) *Exchange {
	e := &Exchange{Version: Version, Hash: request.Hash(), Request: scrubRequest(request, scrub)}
	if reply != nil {
		clean := *reply
		clean.Text, clean.Served = scrub.Scrub(reply.Text), scrub.Scrub(reply.Served)
		e.Reply = &clean
	}
	if err != nil {
		e.Error = scrub.Scrub(err.Error())
		var failed *llm.Error
		if errors.As(err, &failed) {
			e.Kind = failed.Kind.String()
		}
	}
	return e
}

func scrubRequest(r *llm.Request, scrub llm.Scrubber) *llm.Request {
	clean := *r
	clean.Messages = make([]llm.Message, len(r.Messages))
	for i, m := range r.Messages {
		clean.Messages[i] = llm.Message{Role: m.Role, Text: scrub.Scrub(m.Text)}
	}
	return &clean
}

// Player answers requests from recorded exchanges: first the next unused one with the same hash, then the one with the same request
// id, else the next unused one in order. So a campaign replays exactly, and a changed one still gets every recorded proposal.
type Player struct {
	mu        sync.Mutex
	exchanges []*Exchange
	used      []bool
}

// NewPlayer returns a player of the exchanges that have a reply.
func NewPlayer(exchanges []*Exchange) *Player {
	p := &Player{}
	for _, e := range exchanges {
		if e.Reply != nil {
			p.exchanges = append(p.exchanges, e)
		}
	}
	p.used = make([]bool, len(p.exchanges))
	return p
}

// Open reads a cassette.
func Open(path string) (*Player, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open cassette: %w", err)
	}
	exchanges, err := Read(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("cassette %s: %w", path, err)
	}
	return NewPlayer(exchanges), nil
}

// Read reads exchanges, one JSON object a line. A torn last line is left out.
func Read(r io.Reader) ([]*Exchange, error) {
	var exchanges []*Exchange
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			var e Exchange
			if len(line) > 0 && json.Unmarshal(line, &e) == nil && e.Version == Version {
				exchanges = append(exchanges, &e)
			}
			return exchanges, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		var e Exchange
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: not an exchange: %w", n, err)
		}
		if e.Version != Version {
			return nil, fmt.Errorf("line %d: version %d; this program reads version %d", n, e.Version, Version)
		}
		exchanges = append(exchanges, &e)
	}
}

// Complete returns a recorded reply, or an error that wraps llm.ErrNoMore.
func (p *Player) Complete(ctx context.Context, r *llm.Request) (*llm.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	hash := r.Hash()
	for _, same := range []func(e *Exchange) bool{
		func(e *Exchange) bool { return e.Hash == hash },
		func(e *Exchange) bool { return e.Request != nil && e.Request.ID == r.ID },
		func(e *Exchange) bool { return e.Request == nil || e.Request.For == r.For },
	} {
		for i, e := range p.exchanges {
			if !p.used[i] && same(e) {
				p.used[i] = true
				reply := *e.Reply
				reply.CostMicroUSD, reply.Took = 0, 0 // nothing was asked of anyone
				return &reply, nil
			}
		}
	}
	return nil, fmt.Errorf("recording of %d exchanges: %w", len(p.exchanges), llm.ErrNoMore)
}

// Skip marks the exchanges with the given request ids as used: those that an earlier run of the campaign has had.
func (p *Player) Skip(ids map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range p.exchanges {
		if e.Request != nil && ids[e.Request.ID] {
			p.used[i] = true
		}
	}
}
