/** What k6 has of these; its types leave them out. */
declare const console: Record<'log' | 'info' | 'warn' | 'error', (text: string) => void>;
declare function setTimeout(then: () => void, ms: number): number;
