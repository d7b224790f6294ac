-- works with 14
-- Who made an invite: an email, or the operator. Empty if an earlier version made it.
ALTER TABLE invites ADD COLUMN made_by text NOT NULL DEFAULT '';
