package memory

import (
	"context"
	"database/sql"
)

// Use is one campaign's use of a structure.
type Use struct {
	Campaign string
	Number   int // the structure's number there
}

// Uses returns the campaigns other than one that searched the structure with this digest, newest first, at most limit.
func (s *Store) Uses(ctx context.Context, digest, except string, limit int) ([]Use, error) {
	var out []Use
	err := s.each(ctx, "structures", `SELECT s.campaign, s.number FROM structures s JOIN campaigns c ON c.id = s.campaign
		WHERE s.digest = ? AND s.campaign <> ? AND s.number > 0 ORDER BY c.created DESC, c.id DESC LIMIT ?`, []any{digest, except, limit}, func(rows *sql.Rows) error {
		var u Use
		if err := rows.Scan(&u.Campaign, &u.Number); err != nil {
			return err
		}
		out = append(out, u)
		return nil
	})
	return out, err
}
