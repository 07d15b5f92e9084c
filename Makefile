# Each target does its own set-up; what a target really does is in tools/.

PYTHON := tools/with-python
RUN    := .venv/run/bin

.DEFAULT_GOAL := help
.PHONY: help setup audit capture demo test check failed scenario lint unit sanity lab-test bench prove oracles mutants fuzz integrations molecule docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## all virtual environments, and the link that lets playbooks run from this checkout
	@$(PYTHON) tools/venvs.py --all

audit: ## rate this machine against every profile; changes nothing
	@$(PYTHON) tools/venvs.py run
	@$(RUN)/ansible-playbook -i localhost, -c local \
	    -e '{"ansible_python_interpreter": "{{ ansible_playbook_python }}"}' playbooks/audit.yml

capture: ## pack what the facts read on this machine into a file for a bug report
	@$(PYTHON) tools/venvs.py run
	@$(RUN)/ansible-playbook -i localhost, -c local \
	    -e '{"ansible_python_interpreter": "{{ ansible_playbook_python }}"}' playbooks/capture.yml

demo: ## show harden-db on a throw-away host with emulated disks
	@$(PYTHON) tools/venvs.py run
	@$(RUN)/python -m lab doctor --install
	@$(RUN)/python -m lab.demo

test: ## what each commit needs of lint, unit, sanity and lab-test, up to the first failure; ONLY=name for one stage or scenario
	@$(PYTHON) tools/run_tests.py "$(ONLY)"

check: ## before a commit, in about five minutes: lint, the unit tests of one ansible-core, one fast scenario
	@$(PYTHON) tools/run_tests.py check

failed: ## what failed in the last run, and why
	@$(PYTHON) tools/run_tests.py --failed

scenario: ## one scenario: NAME=default; TEST=test_drift for some of its tests; KEEP=1 keeps its machines for the next run
	@$(PYTHON) tools/scenario.py "$(NAME)" $(if $(TEST),--test "$(TEST)") $(if $(KEEP),--keep)

lint: ## style, types, spelling, licences
	@$(PYTHON) tools/run_tests.py lint

unit: ## unit tests on every supported Python and ansible-core that is here
	@$(PYTHON) tools/run_tests.py unit

sanity: ## the built collection as Galaxy and ansible-test see it
	@$(PYTHON) tools/run_tests.py sanity

lab-test: ## behaviour on the lab's machines
	@$(PYTHON) tools/run_tests.py lab

bench: ## what the facts cost with 256 disks and with disks that hang; a quarter to half an hour, emulated
	@$(PYTHON) tools/venvs.py run
	@$(RUN)/python -m lab doctor --install
	@$(RUN)/python -m benchmarks.storage_facts

prove: ## cut the power of lab machines thousands of times; CELLS='flush/virtio/ext4/*' for a part; all of it takes most of a day, emulated
	@$(PYTHON) tools/venvs.py run
	@$(RUN)/python -m proof --install $(CELLS)

oracles: ## hold our reading of configuration files against the real programs; ONLY='fstab units', COUNT=5000, MINUTES=45, SEED=7; ONLY=boot: predictions against real boots
	@$(PYTHON) tools/venvs.py run
	@$(RUN)/python -m lab doctor --install
	@$(RUN)/python -m oracles $(if $(COUNT),--count $(COUNT)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ONLY)

mutants: ## change one thing of the sources at a time, in a copy, and see a test fail; ONLY=word for those with it in their name or file
	@$(PYTHON) tools/venvs.py ansible-latest
	@.venv/ansible-latest/bin/python tools/mutants.py "$(ONLY)"

fuzz: ## every parser against texts that nobody wrote, guided by coverage; MINUTES=5 for each, TARGET=name for one, JOBS=1 at a time
	@$(PYTHON) tools/venvs.py fuzz
	@.venv/fuzz/bin/python -m fuzz --minutes "$(or $(MINUTES),5)" --jobs "$(or $(JOBS),1)" $(TARGET)

integrations: ## the examples for other programs with these programs: ansible-rulebook, ansible-builder, Grafana's types, forges' schemas
	@$(PYTHON) tools/venvs.py integrations
	@PYTHONPATH=playbooks/collections:. .venv/integrations/bin/pytest -rs tests/integrations/test_programs.py

molecule: ## `molecule test -s default` in a fresh clone and a plain virtual environment, as molecule/README.md prints it
	@$(PYTHON) tools/venvs.py ansible-latest
	@.venv/ansible-latest/bin/pytest -s tests/integrations/test_molecule.py

docs: ## the documentation as a site: pages, roles, and each module and plugin
	@$(PYTHON) tools/docs_site.py

clean: ## remove what the targets above made
	@rm -rf .venv .ansible .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    tests/output playbooks/collections
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
