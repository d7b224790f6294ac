-- works with 13
-- link is archive.State.Link: what a request and the span that traces its call find each other by. A server of a version
-- before would leave it NULL. It is NULL for records of before, too, whose states have none.
ALTER TABLE record_states ADD COLUMN link uuid;
