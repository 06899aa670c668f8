-- What the task store keeps (shared/adapters/postgres_store.ts, and POSTGRES.md beside it). Every write of the store is
-- one statement, so nothing here depends on a session: a transaction pooler may stand before it.

do $$
begin
  if getdatabaseencoding() <> 'UTF8' then
    raise exception 'the database has the encoding %; it must have UTF8', getdatabaseencoding();
  end if;
end
$$;

-- Not "public": that one is served to the world by the host's REST interface.
create schema verbatim;

-- Every migration writes its own version, whoever applies it.
create table verbatim.migrations (
  version text primary key,
  applied_at timestamptz not null default now()
);

-- The secret that task keys are derived from: one row, written by the first reader.
create table verbatim.secret (
  only_row boolean primary key default true check (only_row),
  value bytea not null check (octet_length(value) = 32)
);

create sequence verbatim.task_versions as bigint;

-- Records are `json` and not `jsonb`: `json` keeps the text as it was written, while `jsonb` refuses \u0000 and lone
-- surrogates, which agents do send, and writes numbers anew.
-- Ids compare byte by byte: lists go by them, whatever the database's language is.
create table verbatim.tasks (
  task_id text collate "C" primary key,
  uid text collate "C" not null,
  -- New with every change of the record, and never used again.
  version bigint not null default nextval('verbatim.task_versions'),
  -- Names the attempt that wrote this version, so that an attempt whose acknowledgement was lost knows its own work.
  change_id text not null,
  -- Null once the task is dropped.
  key_hash text collate "C",
  -- SHA-256, since the names may be of any length.
  group_hash bytea,
  idempotency_hash bytea,
  expires_at_ms bigint not null,
  record json not null,
  constraint tasks_key unique (key_hash),
  constraint tasks_idempotency unique (idempotency_hash)
) with (fillfactor = 70); -- Room for the next version of a record on its own page: no index changes with it.

create index tasks_group on verbatim.tasks (group_hash, task_id) where group_hash is not null;
create index tasks_expiry on verbatim.tasks (expires_at_ms);

-- What a task has beside its record lies under its uid, and can't outlive this row. The row goes when the task is
-- dropped, replaced or swept; `removed` marks a removal that is under way or was cut short.
create table verbatim.uids (
  uid text collate "C" primary key,
  removed boolean not null default false
);

create index uids_removed on verbatim.uids (uid) where removed;

-- Turns, immutable. The bulk is a turn's arrays bit for bit and its detail (core/turn_codec.ts).
create table verbatim.turns (
  uid text collate "C" not null references verbatim.uids on delete cascade,
  turn integer not null check (turn >= 0),
  -- Random per attempt: its presence proves whose commit it was. `version` is the task's, as that commit made it.
  blob_id text not null,
  version bigint not null,
  record json not null,
  bulk bytea not null,
  primary key (uid, turn)
);

-- Token ids and logprobs hardly compress; trying to costs more than the commit itself.
alter table verbatim.turns alter column bulk set storage external;

-- The turn that answers a request of this digest.
create table verbatim.repeats (
  uid text collate "C" not null references verbatim.uids on delete cascade,
  digest text collate "C" not null,
  turn integer not null,
  primary key (uid, digest)
);

-- Leases of calls in flight.
create table verbatim.calls (
  uid text collate "C" not null references verbatim.uids on delete cascade,
  call_id text collate "C" not null,
  lease json not null,
  primary key (uid, call_id)
);

create table verbatim.events (
  uid text collate "C" not null references verbatim.uids on delete cascade,
  ulid text collate "C" not null,
  event json not null,
  primary key (uid, ulid)
);

insert into verbatim.migrations (version) values ('20261129000000') on conflict do nothing;
