/** Request targets (RFC 9112, 3.2). */

/** Returns path and query of a request target; proxies may send the absolute form (RFC 9112, 3.2.2). */
export function originForm(target: string): string {
  const absolute = /^https?:\/\/[^/?#]*(.*)$/i.exec(target);
  if (!absolute) return target;
  const rest = absolute[1] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Decodes percent-encoded unreserved characters of the path (RFC 3986, 6.2.2.2), and leaves the query unchanged. */
export function normalized(target: string): string {
  const [path = ''] = target.split('?', 1);
  if (!path.includes('%')) return target;
  const plain = path.replace(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(parseInt(escape.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : escape;
  });
  return plain + target.slice(path.length);
}
