/** A strict parser of `application/x-www-form-urlencoded`, for form bodies and query strings. */

/** All values of each name, in the order sent. */
type FormFields = ReadonlyMap<string, readonly string[]>;

/** Returns undefined for broken percent-encoding or invalid UTF-8. `+` is a space. */
export function parseForm(text: string): FormFields | undefined {
  const fields = new Map<string, string[]>();
  try {
    for (const pair of text.split('&')) {
      if (pair === '') continue;
      const equals = pair.indexOf('=');
      const name = decode(equals < 0 ? pair : pair.slice(0, equals));
      const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
      const values = fields.get(name);
      if (values) values.push(value);
      else fields.set(name, [value]);
    }
  } catch {
    return undefined;
  }
  return fields;
}

/** Throws a URIError for broken percent-encoding. */
const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '));
