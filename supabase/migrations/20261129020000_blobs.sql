-- Bytes of any size that a turn's record names (shared/adapters/pg_blobs.ts), in parts of some megabytes. They are written
-- ahead of the record: what no record names does not exist, and goes with its uid.

create table verbatim.blobs (
  uid text collate "C" not null references verbatim.uids on delete cascade,
  -- Random per attempt.
  name text collate "C" not null,
  part integer not null check (part >= 0),
  bulk bytea not null,
  primary key (uid, name, part)
);

-- Expert and token ids: trying to compress them costs more than the write.
alter table verbatim.blobs alter column bulk set storage external;

insert into verbatim.migrations (version) values ('20261129020000') on conflict do nothing;
