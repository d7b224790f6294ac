package counting_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rowcode"
)

// slowStore has rows that all match, and takes a while for each. Use it within synctest, where
// that time passes immediately.
type slowStore struct {
	archive.Store
	rows  int
	each  time.Duration
	walks int   // begun so far
	err   error // after the last row
}

func (s *slowStore) row(ctx context.Context, i int) (*wire.Row, error) {
	select {
	case <-time.After(s.each):
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	return &wire.Row{
		RequestID: fmt.Sprintf("0195529c-1c00-7000-8000-%012d", i),
		ListTime:  time.Unix(1_800_000_000, 0).UTC().Add(-time.Duration(i) * time.Second),
		Engine:    "gpt-4o",
		Status:    "SUCCESS",
	}, nil
}

func (s *slowStore) Sum(ctx context.Context, _ string, _ query.Query, _ rowcode.Columns, sums query.Sums) error {
	for i := range s.rows {
		row, err := s.row(ctx, i)
		if err == nil {
			err = sums.Add(row)
		}
		if err != nil {
			return err
		}
	}

	return s.err
}

func (s *slowStore) Scan(ctx context.Context, _ string, _ query.Query, _ rowcode.Columns,
	fn func(*wire.Row) (bool, error)) (*query.Position, error) {
	s.walks++

	for i := range s.rows {
		row, err := s.row(ctx, i)
		if err != nil {
			return nil, err
		}
		if more, err := fn(row); err != nil || !more {
			return nil, err
		}
	}

	return nil, s.err
}

func (s *slowStore) archive() *records.Service {
	return records.New(records.Config{
		Store:   s,
		Metrics: metrics.New("server", "test"),
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}
