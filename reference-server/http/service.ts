/** The Screenings Retrieval Service: the token endpoint (4.1) and the REST API (4.2) in one handler. */
import { errorAnswer, type Handler, type ServiceAnswer } from './http.ts';
import type { ServiceParts } from '../parts.ts';
import { answerScreenings } from './screenings-endpoint.ts';
import { answerToken } from './token-endpoint.ts';

export * from '../parts.ts';

/** Returns the handler; all state is in the parts. */
export function createService(parts: ServiceParts): Handler {
  const tokenPath = `${parts.pathPrefix}/oauth/token`;
  const tenantsPath = `${parts.pathPrefix}/v1/tenants/`;

  return async (request) => {
    const mark = request.path.indexOf('?');
    const path = mark < 0 ? request.path : request.path.slice(0, mark);
    const query = mark < 0 ? '' : request.path.slice(mark + 1);

    if (path === tokenPath) {
      return request.method === 'POST' ? answerToken(request, parts) : methodNotAllowed('POST');
    }
    const tenantId = path.startsWith(tenantsPath)
      ? /^([^/]+)\/screenings$/.exec(path.slice(tenantsPath.length))?.[1]
      : undefined;
    if (tenantId !== undefined) {
      // HEAD is answered like GET; node leaves out the body (RFC 9110, 9.3.2).
      return request.method === 'GET' || request.method === 'HEAD'
        ? answerScreenings({ tenantId, query, headers: request.headers }, parts)
        : methodNotAllowed('GET, HEAD');
    }
    return errorAnswer(404, 'not_found', 'no resource exists at this path');
  };
}

function methodNotAllowed(allow: string): ServiceAnswer {
  return errorAnswer(405, 'method_not_allowed', `this path supports only ${allow}`, [['allow', allow]]);
}
