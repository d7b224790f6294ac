package postgres

import "context"

// SummarizeFew lets summaries be made of a few rows, as soon as there are any.
func (db *DB) SummarizeFew() { db.summarizing = summarizing{rows: 3, least: 1} }

// SummarizeAccount makes the summaries of one account.
func (db *DB) SummarizeAccount(ctx context.Context, account string) error {
	key, err := accountKey(account)
	if err == nil {
		err = db.summarizeAccount(ctx, key)
	}
	return err
}
