package measure

import (
	"context"

	"ridgepoint/harness"
	"ridgepoint/harness/task"
)

// hiddenFrom keeps the seeds of hidden sizes apart from those of scored ones.
const hiddenFrom = 1 << 16

// hidden times sizes that nobody was scored on, for everyone: a kernel that is fast at the scored sizes alone shows it there. The
// times are for a reader; nothing is decided by them, but a launch that is wrong is as wrong as elsewhere.
func (m *meter) hidden(ctx context.Context) error {
	for i, size := range m.Hidden {
		st, err := m.unscored(ctx, hiddenFrom+i, size)
		if err != nil {
			return err
		}
		m.result.Hidden = append(m.result.Hidden, *st)
	}
	return nil
}

func (m *meter) unscored(ctx context.Context, index int, size harness.Size) (*harness.SizeTime, error) {
	benches, err := m.bind(ctx, index, size)
	defer func() {
		for _, b := range benches {
			_ = b.Bench.Close() // the program's own Close follows and reports
		}
	}()
	if err != nil {
		return nil, err
	}
	for _, b := range benches {
		b.layout.Hidden = true
	}
	st, err := m.each(ctx, benches, nil)
	if err != nil {
		m.keepFailed(benches)
		return nil, err
	}
	if st.FLOPs, st.Bytes, err = task.WorkAt(m.Task, size); err != nil {
		return nil, err
	}
	st.FloorUS = m.engine.Traits().FloorUS(st.FLOPs, st.Bytes)
	return &st, nil
}
