/** What is seen where nothing has been said yet: the element, and what the server runs. */
import { settings } from "../settings.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";

export function Welcome() {
  const { monitor } = usePage();
  const models = useValue(monitor.models);
  const chosen = useValue(settings).model;
  const { contextTokens, device } = useValue(monitor.properties);
  const model = models.find(({ id }) => id === chosen) ?? models[0];
  const facts = [
    ...(device === undefined ? [] : [device]),
    ...(contextTokens === undefined ? [] : [`${contextTokens.toLocaleString("en")} tokens`]),
  ];
  return (
    <section class="welcome">
      <div class="element" aria-hidden="true">
        <span class="number">30</span>
        <span class="symbol">Zn</span>
        <span class="name">zinc</span>
        <span class="weight">65.38</span>
      </div>
      <h1>What is on your mind?</h1>
      <p>
        Everything stays between this browser and your own machine
        {model === undefined ? (
          "."
        ) : (
          <>
            , where <b>{model.id}</b> answers.
          </>
        )}
      </p>
      {facts.length > 0 && <p class="numbers">{facts.join(" · ")}</p>}
    </section>
  );
}
