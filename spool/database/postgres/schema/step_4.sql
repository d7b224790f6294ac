-- From the tables of version 3. Bodies are packed against each other from now on.
ALTER TABLE record_bodies ADD COLUMN dependants bytea;
