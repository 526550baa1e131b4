/**
 * Every test of specs/ as a check, in run order: checks that run both early and late come before the walks, and
 * checks that only read are grouped where possible. The rate limit comes last, because the requests after it must wait.
 */
import { takeCollected } from '../fixtures/test.ts';
import './2.1-token-response.spec.ts';
import './2.2-claims.spec.ts';
import './4.1-token-request.spec.ts';
import './1-service.spec.ts';
import './5-combinations.spec.ts';
import './7.2-rest-errors.spec.ts';
import './7.2-no-5xx.spec.ts';
import './4.2-valid-windows.spec.ts';
import './4.2-combinations.spec.ts';
import './2.3-screening.spec.ts';
import './2.4-page.spec.ts';
import './4.2-window.spec.ts';
import './4.2-paging.spec.ts';
import './4.2-next-again.spec.ts';
import './4.2-one-tenant.spec.ts';
import './5-authentication.spec.ts';
import './6-events.spec.ts';
import './9-versioning.spec.ts';
import './earlier-run.spec.ts';
import './5-tokens.spec.ts';
import './5-bypass.spec.ts';
import './5-forged.spec.ts';
import './5-tenants.spec.ts';
import './7.1-token-errors.spec.ts';
import './7.2-outage.spec.ts';
import './7.2-rate-limit.spec.ts';

export const SPECS = takeCollected();
