/** Globals of k6 that its types leave out. */
declare const console: Record<'log' | 'info' | 'warn' | 'error', (text: string) => void>;
declare function setTimeout(then: () => void, ms: number): number;
