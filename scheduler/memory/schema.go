package memory

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations bring a store from one version to the next; their number is the version of the schema (PRAGMA user_version).
// Never change one that has been released: append.
var migrations = []string{
	`CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
	CREATE TABLE campaigns (
		id TEXT PRIMARY KEY, created INTEGER NOT NULL, state TEXT NOT NULL, spec TEXT NOT NULL,
		note TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
	CREATE TABLE structures (
		campaign TEXT NOT NULL, number INTEGER NOT NULL, digest TEXT NOT NULL, structure TEXT NOT NULL,
		PRIMARY KEY (campaign, number)) WITHOUT ROWID;
	CREATE UNIQUE INDEX structures_once ON structures (campaign, digest) WHERE number > 0;
	CREATE TABLE trials (
		campaign TEXT NOT NULL, trial INTEGER NOT NULL, purpose TEXT NOT NULL, structure INTEGER NOT NULL,
		candidate TEXT NOT NULL, attempt INTEGER NOT NULL, attempted INTEGER NOT NULL,
		PRIMARY KEY (campaign, trial)) WITHOUT ROWID;
	CREATE INDEX trials_candidate ON trials (campaign, candidate);
	CREATE TABLE outcomes (
		campaign TEXT NOT NULL, trial INTEGER NOT NULL, attempt INTEGER NOT NULL, final INTEGER NOT NULL,
		fault TEXT NOT NULL, worker TEXT NOT NULL, held REAL NOT NULL, received INTEGER NOT NULL, report TEXT NOT NULL);
	CREATE UNIQUE INDEX outcomes_attempt ON outcomes (campaign, trial, attempt);
	CREATE UNIQUE INDEX outcomes_first_final ON outcomes (campaign, trial) WHERE final = 1;
	CREATE TABLE records (
		campaign TEXT NOT NULL, seq INTEGER NOT NULL, trial INTEGER NOT NULL, attempt INTEGER NOT NULL, record TEXT NOT NULL,
		PRIMARY KEY (campaign, seq)) WITHOUT ROWID;
	CREATE UNIQUE INDEX records_trial ON records (campaign, trial);
	CREATE TABLE events (
		campaign TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, trial INTEGER NOT NULL, at INTEGER NOT NULL,
		data TEXT NOT NULL, PRIMARY KEY (campaign, seq)) WITHOUT ROWID;`,
}

// migrate brings the schema to the newest version, each step in a transaction of its own.
func migrate(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if version > len(migrations) {
		return fmt.Errorf("the store has schema version %d, this binary knows up to %d: use the newer ridgepoint that made it", version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
		if _, err := tx.ExecContext(ctx, migrations[version]+fmt.Sprintf("; PRAGMA user_version = %d", version+1)); err != nil {
			_ = tx.Rollback() // the error above is the one to report
			return fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("migrate to version %d: %w", version+1, err)
		}
	}
	return nil
}
