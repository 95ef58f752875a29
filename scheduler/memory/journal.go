package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ridgepoint/harness"
)

// JournalPath returns where a campaign's records.jsonl lies: one record a line, for people and scripts. It is derived from
// the store and may be deleted.
func (s *Store) JournalPath(campaign string) string {
	return filepath.Join(s.dir, "campaigns", campaign, "records.jsonl")
}

// SyncJournal brings a campaign's records.jsonl up to the store: a torn last line is cut, then every record after the last
// whole line is appended. It returns how many it appended.
func (s *Store) SyncJournal(ctx context.Context, campaign string) (appended int, err error) {
	path := s.JournalPath(campaign)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, fmt.Errorf("make the campaign's folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return 0, fmt.Errorf("open the journal: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	last, err := cutTail(f)
	if err != nil {
		return 0, fmt.Errorf("repair %s: %w", path, err)
	}
	w := bufio.NewWriterSize(f, 1<<16)
	err = s.Records(ctx, campaign, last, func(r *harness.Record) error {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode record %d: %w", r.Seq, err)
		}
		appended++
		_, err = w.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		return appended, errors.Join(err, w.Flush())
	}
	return appended, w.Flush()
}

// cutTail truncates f after its last whole line that is a record, leaves the offset there and returns that record's
// sequence number (0: none). Lines are looked at from the end, so that a long journal costs one read.
func cutTail(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	end := size
	for end > 0 {
		start, whole, line, err := lastLine(f, end)
		if err != nil {
			return 0, err
		}
		var head struct {
			Seq int64 `json:"seq"`
		}
		if whole && json.Unmarshal(line, &head) == nil && head.Seq > 0 {
			return head.Seq, keep(f, end, size)
		}
		end = start
	}
	return 0, keep(f, 0, size)
}

func keep(f *os.File, end, size int64) error {
	if end < size {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	_, err := f.Seek(end, io.SeekStart)
	return err
}

// lastLine reads the line that ends at offset end: where it starts, whether it has its newline, and its text.
func lastLine(f *os.File, end int64) (start int64, whole bool, line []byte, err error) {
	const chunk = 1 << 16
	var tail []byte
	for start = end; start > 0; {
		n := min(chunk, start)
		buf := make([]byte, n, int(n)+len(tail))
		if _, err := f.ReadAt(buf, start-n); err != nil {
			return 0, false, nil, err
		}
		tail = append(buf, tail...)
		start -= n
		body := bytes.TrimSuffix(tail, []byte{'\n'})
		if i := bytes.LastIndexByte(body, '\n'); i >= 0 {
			start += int64(i) + 1
			tail = tail[i+1:]
			break
		}
	}
	return start, bytes.HasSuffix(tail, []byte{'\n'}), bytes.TrimSuffix(tail, []byte{'\n'}), nil
}
