/**
 * The script of the report page: filters, copy buttons, and opening the target of an anchor. Without it, everything is
 * listed, can be opened and closed, and selected by hand.
 */
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const rows = all('details.requirement');
  const filters = document.getElementById('filters');
  const boxes = all('#filters [name=status]');
  const [section, needs, text] = ['section', 'class', 'text'].map((name) => filters.elements[name]);
  const shown = document.getElementById('shown');

  function apply() {
    const statuses = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const wanted = text.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const { status, section: own, class: kind } = row.dataset;
      row.hidden = !(
        statuses.has(status) &&
        (section.value === '' || section.value === own) &&
        (needs.value === '' || needs.value === kind) &&
        row.querySelector('summary').textContent.toLowerCase().includes(wanted)
      );
      if (!row.hidden) count += 1;
    }
    for (const group of all('section.group')) {
      group.hidden = !group.querySelector('details.requirement:not([hidden])');
    }
    shown.textContent = 'Showing ' + count + ' of ' + rows.length + ' ' + shown.dataset.noun;
  }

  function openTarget() {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      /* as it stands */
    }
    const target = id && document.getElementById(id);
    if (!target) return;
    if (target.closest('[hidden]')) {
      filters.reset();
      apply();
    }
    if (target.tagName === 'DETAILS') target.open = true;
    target.scrollIntoView();
  }

  async function copy(button) {
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand('copy');
    }
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 1500);
  }

  document.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    if (button.classList.contains('copy')) copy(button);
    if (button.id === 'open-all' || button.id === 'close-all') {
      for (const row of rows) if (!row.hidden) row.open = button.id === 'open-all';
    }
  });
  filters.addEventListener('input', apply);
  filters.addEventListener('submit', (event) => event.preventDefault());
  filters.addEventListener('reset', () => setTimeout(apply));
  addEventListener('hashchange', openTarget);

  for (const element of [filters, ...all('.copy')]) element.hidden = false;
  apply();
  openTarget();
})();
