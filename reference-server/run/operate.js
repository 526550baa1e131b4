/**
 * Sends its standard input to a reference server on this machine: `node operate.js SOCKET PATH < lines`. Plain
 * JavaScript without imports from the kit, because it must start quickly.
 */
import { request } from 'node:http';

const [socketPath, path] = process.argv.slice(2);
const failed = (message) => {
  console.error(message);
  process.exitCode = 1;
};
const post = request({ socketPath, path, method: 'POST' }, (answer) => {
  let text = '';
  answer.on('data', (chunk) => (text += chunk));
  answer.on('end', () => answer.statusCode === 200 || failed(text.trim()));
});
post.on('error', ({ message }) => failed(`the reference server does not answer: ${message}`));
process.stdin.pipe(post);
