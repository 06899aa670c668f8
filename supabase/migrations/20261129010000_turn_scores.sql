-- A teacher's scores of stored turns (shared/adapters/pg_scores.ts). Unlike turns they may be written anew: with another
-- number of top logprobs, or by another teacher beside the first.

create table verbatim.scores (
  uid text collate "C" not null references verbatim.uids on delete cascade,
  -- Name and version of who made them.
  teacher text collate "C" not null,
  turn integer not null check (turn >= 0),
  -- core/turn_scores.ts.
  bulk bytea not null,
  primary key (uid, teacher, turn)
);

-- Ids and logprobs hardly compress.
alter table verbatim.scores alter column bulk set storage external;

insert into verbatim.migrations (version) values ('20261129010000') on conflict do nothing;
