// Package spool keeps a worker's outcomes on its own disk from before they are delivered until the scheduler has made them
// durable. It is one append-only log: every record has its length and a CRC, a torn tail is cut off at the next start, and
// concurrent puts share one fsync. It must not know where outcomes go.
package spool

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process uses the spool.
var ErrLocked = errors.New("spool is in use by another process")

// ErrFull says that the spool has reached its limit: schedulers have been away for very long.
var ErrFull = errors.New("spool is full")

const (
	logName      = "outcomes.log"
	idName       = "id"
	lockName     = "lock"
	headerBytes  = 8
	maxRecord    = 8 << 20
	compactBytes = 16 << 20 // the log is rewritten when it is larger and mostly dead
	limitBytes   = 1 << 30  // of live entries
)

// Entry is one outcome that is not yet acknowledged.
type Entry struct {
	Key       string          `json:"key"` // task id
	Scheduler string          `json:"scheduler"`
	Data      json.RawMessage `json:"data,omitempty"`
	PutMS     int64           `json:"put_ms"` // local clock
}

type record struct {
	Op string `json:"op"` // put or ack
	Entry
}

// Spool is an open spool. Its methods may be called concurrently.
type Spool struct {
	dir  string
	id   string
	lock *os.File

	mu        sync.Mutex
	file      *os.File
	sizeBytes int64
	liveBytes int64
	written   int64 // records
	live      map[string]Entry

	syncMu sync.Mutex // held during fsync and while the file is replaced; taken before mu
	synced int64
}

// Open opens the spool in dir, making it when absent, and reads what is not acknowledged.
func Open(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("open spool %s: %w; give each worker its own --data folder", dir, ErrLocked), lock.Close())
	}
	s := &Spool{dir: dir, lock: lock, live: map[string]Entry{}}
	if s.id, err = ownID(dir); err == nil {
		err = s.load()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// ownID reads or makes the spool's id: outcomes are acknowledged to it, also after a restart.
func ownID(dir string) (string, error) {
	path := filepath.Join(dir, idName)
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) == 16 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("open spool: %w", err)
	}
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // never fails
	id := hex.EncodeToString(raw)
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("open spool: %w", err)
	}
	return id, nil
}

// load reads the log and cuts a torn tail off.
func (s *Spool) load() error {
	f, err := os.OpenFile(filepath.Join(s.dir, logName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open spool: %w", err)
	}
	good, err := s.replay(bufio.NewReaderSize(f, 1<<16))
	if err == nil {
		err = f.Truncate(good)
	}
	if err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open spool %s: %w", f.Name(), err), f.Close())
	}
	s.file, s.sizeBytes = f, good
	return nil
}

// replay applies records until the first that is torn and returns the offset up to which the log is whole.
func (s *Spool) replay(r io.Reader) (good int64, err error) {
	head := make([]byte, headerBytes)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return good, ignoreEnd(err)
		}
		size := binary.LittleEndian.Uint32(head)
		if size > maxRecord {
			return good, nil
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r, body); err != nil {
			return good, ignoreEnd(err)
		}
		var rec record
		if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(head[4:]) || json.Unmarshal(body, &rec) != nil {
			return good, nil
		}
		good += headerBytes + int64(size)
		s.apply(rec)
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func (s *Spool) apply(rec record) {
	switch rec.Op {
	case "put":
		s.liveBytes += int64(len(rec.Data) - len(s.live[rec.Key].Data))
		s.live[rec.Key] = rec.Entry
	case "ack":
		if e, ok := s.live[rec.Key]; ok {
			s.liveBytes -= int64(len(e.Data))
			delete(s.live, rec.Key)
		}
	default: // of a later release: without meaning here, and harmless
	}
}

// ID returns the spool's id.
func (s *Spool) ID() string { return s.id }

// Put writes an outcome and returns once it is on disk.
func (s *Spool) Put(e Entry) error {
	seq, err := s.append(record{Op: "put", Entry: e})
	if err != nil {
		return fmt.Errorf("spool %s: %w", e.Key, err)
	}
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	if s.synced >= seq {
		return nil
	}
	s.mu.Lock()
	upTo, f := s.written, s.file
	s.mu.Unlock()
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("spool %s: fsync: %w", e.Key, err)
	}
	s.synced = upTo
	return nil
}

func (s *Spool) append(rec record) (seq int64, err error) {
	frame, err := frameOf(rec)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec.Op == "put" && s.liveBytes > limitBytes {
		return 0, ErrFull
	}
	if _, err := s.file.Write(frame); err != nil {
		return 0, errors.Join(err, s.cutLocked())
	}
	s.sizeBytes += int64(len(frame))
	s.written++
	s.apply(rec)
	return s.written, nil
}

// cutLocked takes a half-written record off the log again.
func (s *Spool) cutLocked() error {
	err := s.file.Truncate(s.sizeBytes)
	_, seekErr := s.file.Seek(s.sizeBytes, io.SeekStart)
	return errors.Join(err, seekErr)
}

func frameOf(rec record) ([]byte, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	if len(body) > maxRecord {
		return nil, fmt.Errorf("record has %d bytes; at most %d", len(body), maxRecord)
	}
	frame := make([]byte, headerBytes, headerBytes+len(body))
	binary.LittleEndian.PutUint32(frame, uint32(len(body)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.ChecksumIEEE(body))
	return append(frame, body...), nil
}

// Ack drops outcomes that are durable at their scheduler. Keys that are not there are ignored. Acknowledgements are not
// synced: one that is lost leads to a delivery that the scheduler knows already.
func (s *Spool) Ack(keys ...string) error {
	for _, key := range keys {
		if !s.Has(key) {
			continue
		}
		if _, err := s.append(record{Op: "ack", Entry: Entry{Key: key}}); err != nil {
			return fmt.Errorf("spool: acknowledge %s: %w", key, err)
		}
	}
	return s.compact()
}

// compact rewrites the log when it is large and mostly acknowledged.
func (s *Spool) compact() error {
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizeBytes < compactBytes || s.liveBytes*4 > s.sizeBytes {
		return nil
	}
	f, err := os.CreateTemp(s.dir, ".log-*")
	if err != nil {
		return fmt.Errorf("compact spool: %w", err)
	}
	size := int64(0)
	for _, key := range s.keysLocked() {
		frame, ferr := frameOf(record{Op: "put", Entry: s.live[key]})
		if ferr == nil {
			_, ferr = f.Write(frame)
		}
		if ferr != nil {
			return errors.Join(fmt.Errorf("compact spool: %w", ferr), f.Close(), os.Remove(f.Name()))
		}
		size += int64(len(frame))
	}
	err = f.Sync()
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(s.dir, logName))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("compact spool: %w", err), f.Close(), os.Remove(f.Name()))
	}
	old := s.file
	s.file, s.sizeBytes, s.synced = f, size, s.written
	return old.Close()
}

func (s *Spool) keysLocked() []string {
	keys := make([]string, 0, len(s.live))
	for key := range s.live {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Has reports whether an outcome waits for its acknowledgement.
func (s *Spool) Has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.live[key]
	return ok
}

// Len returns how many outcomes wait for their acknowledgement.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// Entries returns the outcomes that wait, oldest first.
func (s *Spool) Entries() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Entry, 0, len(s.live))
	for _, e := range s.live {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int {
		if a.PutMS != b.PutMS {
			return int(a.PutMS - b.PutMS)
		}
		return strings.Compare(a.Key, b.Key)
	})
	return out
}

// Expire drops outcomes older than age and returns their keys: nobody has asked for them for so long that nobody will.
func (s *Spool) Expire(now time.Time, age time.Duration) ([]string, error) {
	var old []string
	for _, e := range s.Entries() {
		if now.Sub(time.UnixMilli(e.PutMS)) > age {
			old = append(old, e.Key)
		}
	}
	return old, s.Ack(old...)
}

// Close closes the files; what is not acknowledged stays for the next Open.
func (s *Spool) Close() error {
	s.syncMu.Lock()
	defer s.syncMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.file.Sync(), s.file.Close(), s.lock.Close())
}
