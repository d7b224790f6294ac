package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
)

// queueDeltas reads the deltas of a state that was just read, and joins them to it.
//
// A state and its deltas are read by two statements. Readers see the same moment in both;
// writers find another revision if the record was changed in between.
func (c *codec) queueDeltas(b *pgx.Batch, account string, id uuid, s *archive.Stored) {
	// Most states have none, and are not asked about.
	if !s.Large() {
		return
	}

	b.Queue(`
		SELECT after, delta FROM record_deltas
		WHERE account_id = $1 AND request_id = $2 AND ts = $3 ORDER BY after`,
		account, id, tsOf(id)).Query(func(rows pgx.Rows) error {
		var deltas []archive.Delta
		var d archive.Delta
		var packed []byte
		// In the order in which they were added, which is that of the primary key.
		_, err := pgx.ForEachRow(rows, []any{&d.After, &packed}, func() (err error) {
			if d.Value, err = c.Unpack(packed, nil); err != nil {
				return damaged("a delta of record "+id.String(), err)
			}
			deltas = append(deltas, d)
			return nil
		})
		if err != nil {
			return err
		}

		if err := s.Join(deltas); err != nil {
			return damaged("the deltas of record "+id.String(), err)
		}
		return nil
	})
}

// joinDeltas is queueDeltas for one record, run immediately.
func (c *codec) joinDeltas(ctx context.Context, tx reader, account string, id uuid, s *archive.Stored) error {
	b := &pgx.Batch{}
	c.queueDeltas(b, account, id, s)

	return sendBatch(ctx, tx, b)
}

// sendBatch sends a batch unless it is empty.
func sendBatch(ctx context.Context, tx reader, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}

	return tx.SendBatch(ctx, b).Close()
}
