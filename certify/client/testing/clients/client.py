"""A client of the Screenings API in Python, with nothing but the standard library."""

import json
import os
import random
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from email.utils import parsedate_to_datetime

ENV = {name[len("SCREENINGS_"):]: value for name, value in os.environ.items() if name.startswith("SCREENINGS_")}
MARGIN_S = 60
MOST_RETRIES = 5
LONGEST_WAIT_S = 120


class GaveUp(Exception):
    pass


class Tokens:
    """Keeps the token until a minute before it expires (section 5.6)."""

    def __init__(self):
        self.token, self.renew_at = None, 0.0

    def get(self):
        if self.token is None or time.monotonic() >= self.renew_at:
            self.mint()
        return self.token

    def forget(self):
        self.token = None

    def mint(self):
        form = urllib.parse.urlencode(
            {
                "grant_type": "client_credentials",
                "client_id": ENV["CLIENT_ID"],
                "client_secret": ENV["CLIENT_SECRET"],
                "scope": "screenings.read",
            }
        )
        request = urllib.request.Request(ENV["AUTH_URL"] + "/oauth/token", data=form.encode(), method="POST")
        asked_at = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                body = json.load(answer)
        except urllib.error.HTTPError as error:
            raise GaveUp(f"no token: {error.code}") from None
        lifetime = body["expires_in"]
        self.token = body["access_token"]
        self.renew_at = asked_at + (lifetime - MARGIN_S if lifetime > MARGIN_S else lifetime)


def wait_named(value, retry):
    """The wait in seconds: as Retry-After says, otherwise a backoff."""
    if value is None:
        return 0.2 * 2**retry
    if value.isdigit():
        return int(value)
    return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())


def page_at(url, tokens):
    refused = limited = failed = 0
    while True:
        request = urllib.request.Request(url, headers={"Accept": "application/json"})
        # Not sent where a redirect leads.
        request.add_unredirected_header("Authorization", "Bearer " + tokens.get())
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 401 and refused == 0:
                refused += 1
                tokens.forget()
            elif error.code == 429 and limited < MOST_RETRIES:
                time.sleep(min(LONGEST_WAIT_S, wait_named(error.headers["Retry-After"], limited)))
                limited += 1
            elif error.code >= 500 and failed < MOST_RETRIES:
                time.sleep(random.uniform(0.5, 1) * 0.2 * 2**failed)
                failed += 1
            else:
                raise GaveUp(f"a page was answered {error.code}") from None


def windows_screenings(tokens):
    query = {"from": ENV["FROM"], "to": ENV["TO"]}
    if "PAGE_SIZE" in ENV:
        query["pageSize"] = ENV["PAGE_SIZE"]
    url = f"{ENV['BASE_URL']}/v1/tenants/{ENV['TENANT_ID']}/screenings?{urllib.parse.urlencode(query)}"
    while url:
        page = page_at(url, tokens)
        yield from page["items"]
        following = page["links"].get("next")
        url = following and urllib.parse.urljoin(url, following)


def events_screenings():
    if "EVENTS" in ENV:
        with open(ENV["EVENTS"], encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["data"]


def main():
    seen = set()
    sources = (windows_screenings(Tokens()), events_screenings())
    for screening in (one for source in sources for one in source):
        if screening["id"] not in seen:
            seen.add(screening["id"])
            print(json.dumps(screening, ensure_ascii=False))


try:
    sys.stdout.reconfigure(encoding="utf-8")
    main()
except (GaveUp, OSError, ValueError, ssl.SSLError) as error:
    sys.exit(f"gave up: {error}")
