#!/bin/sh
# A client of the Screenings API as one writes it in a hurry: curl, sed and a loop. It retries nothing.
set -eu

token=$(curl -sf "$SCREENINGS_AUTH_URL/oauth/token" \
  --data-urlencode grant_type=client_credentials \
  --data-urlencode "client_id=$SCREENINGS_CLIENT_ID" \
  --data-urlencode "client_secret=$SCREENINGS_CLIENT_SECRET" \
  --data-urlencode scope=screenings.read | sed -nE 's/.*"access_token" *: *"([^"]+)".*/\1/p')

page=$(mktemp)
trap 'rm -f "$page"' EXIT

url="$SCREENINGS_BASE_URL/v1/tenants/$SCREENINGS_TENANT_ID/screenings"
set -- -G --data-urlencode "from=$SCREENINGS_FROM" --data-urlencode "to=$SCREENINGS_TO" \
  --data-urlencode "pageSize=${SCREENINGS_PAGE_SIZE:-100}"
while [ -n "$url" ]; do
  curl -sf -o "$page" -H "Authorization: Bearer $token" "$@" "$url"
  set --
  # One item a line: an item begins with its id.
  sed -E 's/^\{"items":\[//; s/\],"links":\{.*//; s/\},\{"id":/}\n{"id":/g' "$page"
  echo
  url=$(sed -nE 's/.*"links":\{[^}]*"next":"([^"]+)".*/\1/p' "$page")
done
