-- works with 14
-- The first rows of the stretch in each order that a list may be sorted by (query.Tops). NULL where an earlier version made the
-- summary; empty where the rows are too heavy to be held in memory.
ALTER TABLE summaries ADD COLUMN tops bytea;
