#!/bin/bash
# Understands what the official PostgreSQL image understands and tests use: POSTGRES_USER, POSTGRES_PASSWORD,
# POSTGRES_DB, and a command that is `postgres` with options (or options alone, or another program).
set -euo pipefail

if [ "${1:-postgres}" = postgres ]; then shift || true; elif [ "${1#-}" = "$1" ]; then exec "$@"; fi

: "${POSTGRES_USER:=postgres}" "${POSTGRES_DB:=$POSTGRES_USER}" "${PGDATA:=/var/lib/postgresql/data}"
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo 'POSTGRES_PASSWORD is not set' >&2
    exit 1
  fi
  install -d -o postgres -g postgres -m 0700 "$PGDATA"
  password_file=$(as_postgres mktemp --tmpdir=/var/lib/postgresql)
  printf '%s\n' "$POSTGRES_PASSWORD" >"$password_file"
  as_postgres initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$password_file" \
    --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8 --no-sync
  rm "$password_file"
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  if [ "$POSTGRES_DB" != postgres ]; then
    # On the socket alone: nobody outside may take a server that is still being set up for a ready one.
    as_postgres pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses=''" start
    as_postgres createdb --username="$POSTGRES_USER" --maintenance-db=postgres -- "$POSTGRES_DB"
    as_postgres pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop
  fi
fi

exec setpriv --reuid=postgres --regid=postgres --init-groups -- \
  postgres -D "$PGDATA" -c listen_addresses='*' "$@"
