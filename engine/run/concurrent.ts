/** Runs tasks with a concurrency limit; results are in the order of the tasks. */
export async function mapConcurrently<T, R>(
  tasks: readonly T[],
  run: (task: T) => Promise<R>,
  limit = 6,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < tasks.length) {
      const index = next++;
      results[index] = await run(tasks[index]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, tasks.length) }, worker));
  return results;
}
