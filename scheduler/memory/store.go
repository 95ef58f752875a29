package memory

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
)

// fileName is the store's file within its folder.
const fileName = "ridgepoint.db"

// Store is an open store. It is safe for concurrent use.
type Store struct {
	dir       string
	db        *sql.DB // readers
	writer    *sql.DB // one connection; nil when opened read-only
	lock      *os.File
	scheduler string
	queue     chan *Commit
	done      chan struct{} // closed when the committer has ended

	mu     sync.RWMutex // guards closed, and that no send on queue follows its close
	closed bool
}

// Open opens the store in dir, making both when absent, and takes the scheduler's lock. It brings the schema up to date and
// checks the file's integrity. ErrLocked: another scheduler owns it.
func Open(ctx context.Context, dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, dir, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

func open(ctx context.Context, dir string, lock *os.File) (_ *Store, err error) {
	s := &Store{dir: dir, lock: lock, queue: make(chan *Commit, queueLength), done: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeFiles())
		}
	}()
	if s.writer, err = connect(dir, false); err != nil {
		return nil, err
	}
	s.writer.SetMaxOpenConns(1)
	if err := check(ctx, s.writer, filepath.Join(dir, fileName)); err != nil {
		return nil, err
	}
	if err := migrate(ctx, s.writer); err != nil {
		return nil, err
	}
	if s.scheduler, err = schedulerID(ctx, s.writer); err != nil {
		return nil, err
	}
	if s.db, err = connect(dir, true); err != nil {
		return nil, err
	}
	c, err := newCommitter(ctx, s.writer)
	if err != nil {
		return nil, err
	}
	go func() { // Close waits for it
		defer close(s.done)
		c.run(s.queue)
	}()
	return s, nil
}

// OpenReader opens the store in dir for reading, beside a scheduler or without one. It takes no lock.
func OpenReader(ctx context.Context, dir string) (*Store, error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no campaigns in %s: start one with `ridgepoint run`, or name the folder with --data: %w", dir, err)
	}
	db, err := connect(dir, true)
	if err != nil {
		return nil, err
	}
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), db.Close())
	}
	if version != len(migrations) {
		return nil, errors.Join(fmt.Errorf("%s has schema version %d, this binary wants %d: open it once with `ridgepoint run` or `resume` of this version", path, version, len(migrations)), db.Close())
	}
	return &Store{dir: dir, db: db}, nil
}

// connect opens the database. Writers make every commit durable before it returns: WAL with synchronous=FULL.
func connect(dir string, readOnly bool) (*sql.DB, error) {
	q := url.Values{}
	for _, pragma := range []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "temp_store(MEMORY)", "cache_size(-16384)", "wal_autocheckpoint(4000)"} {
		q.Add("_pragma", pragma)
	}
	if readOnly {
		q.Add("_pragma", "query_only(true)")
	}
	q.Set("_txlock", "immediate")
	path, err := filepath.Abs(filepath.Join(dir, fileName))
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

// fullCheckBytes is up to where the whole file is checked on every open; a larger one has its pages and indexes checked by
// SQLite as they are read, and its newest part (the write-ahead log) by checksum.
const fullCheckBytes = 64 << 20

// check verifies the file before anything is written to it.
func check(ctx context.Context, db *sql.DB, path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Size() > fullCheckBytes {
		return quickLook(ctx, db, path)
	}
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return damaged(path, err.Error())
	}
	if verdict != "ok" {
		return damaged(path, verdict)
	}
	return nil
}

// quickLook checks the schema and the tables that a resume depends on.
func quickLook(ctx context.Context, db *sql.DB, path string) error {
	for _, table := range []string{"campaigns", "structures", "events"} {
		var verdict string
		if err := db.QueryRowContext(ctx, "PRAGMA quick_check('"+table+"')").Scan(&verdict); err != nil {
			return damaged(path, err.Error())
		}
		if verdict != "ok" {
			return damaged(path, verdict)
		}
	}
	return nil
}

func damaged(path, verdict string) error {
	return fmt.Errorf("%s is damaged (%s): restore a copy, or move the folder away and start anew; `sqlite3 %s .recover` may save its rows", path, verdict, path)
}

// schedulerID reads the id of the scheduler that owns this store, making it with the store.
func schedulerID(ctx context.Context, db *sql.DB) (string, error) {
	var raw [8]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return "", fmt.Errorf("make the scheduler's id: %w", err)
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO meta (key, value) VALUES ('scheduler_id', ?) ON CONFLICT DO NOTHING", hex.EncodeToString(raw[:])); err != nil {
		return "", fmt.Errorf("store the scheduler's id: %w", err)
	}
	var id string
	if err := db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'scheduler_id'").Scan(&id); err != nil {
		return "", fmt.Errorf("read the scheduler's id: %w", err)
	}
	return id, nil
}

// SchedulerID returns the id that was made with this store. A reader has none.
func (s *Store) SchedulerID() string { return s.scheduler }

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// Close commits what was submitted, ends the committer and drops the lock.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.queue != nil {
		close(s.queue)
	}
	s.mu.Unlock()
	if s.done != nil {
		<-s.done
	}
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if s.lock != nil && s.closed {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
