-- On Citus, in the database of promptspool: once, after its first start has made the tables, while no server writes.
-- What grows with the calls is spread by the request, so that a record, its state and its bodies lie on one node; what is counted and summed up
-- for an account, by the account; the rest is small, and on every node.
SELECT create_distributed_table('record_states', 'request_id');
SELECT create_distributed_table('record_deltas', 'request_id', colocate_with => 'record_states');
SELECT create_distributed_table('records', 'request_id', colocate_with => 'record_states');
SELECT create_distributed_table('record_bodies', 'request_id', colocate_with => 'record_states');
SELECT create_distributed_table('tombstones', 'request_id', colocate_with => 'record_states');
SELECT create_distributed_table('account_weeks', 'account_id');
SELECT create_distributed_table('summaries', 'account_id', colocate_with => 'account_weeks');
SELECT create_distributed_table('deleted_values', 'account_id', colocate_with => 'account_weeks');
SELECT create_reference_table('accounts');
SELECT create_reference_table('keys');
SELECT create_reference_table('users');
SELECT create_reference_table('invites');
SELECT create_reference_table('resets');
SELECT create_reference_table('sessions');
SELECT create_reference_table('sign_in_failures');
SELECT create_reference_table('audit');
SELECT create_reference_table('sidecars');
SELECT create_reference_table('registries');
SELECT create_reference_table('templates');
SELECT create_reference_table('template_versions');
