/** What a client throws. */

/** The error of a request that must fail. Clients' promises begin when they are awaited. */
export async function refusal(request: PromiseLike<unknown>): Promise<unknown> {
  try {
    await request;
  } catch (error) {
    return error;
  }
  throw new Error("it was accepted");
}
