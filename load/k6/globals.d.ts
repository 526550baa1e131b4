/** Globals of k6 that are missing from its types. */
declare const console: Record<'log' | 'info' | 'warn' | 'error', (text: string) => void>;
declare function setTimeout(then: () => void, ms: number): number;
