# Each target sets up what it needs: a virtual environment in .venv with pinned packages, made once.
PYTHON ?= python3
BIN := .venv/bin
# Small nets gain little from a second thread; two processes with one each are nearly twice as fast.
export OMP_NUM_THREADS ?= 1

.PHONY: install demo test test-long check bench results clean help

help:
	@echo "make install    set up .venv, in which sparc is"
	@echo "make demo       learn Seq-Digits with Chorus, and look at the result"
	@echo "make test       the test suite"
	@echo "make check      style, types, import layers, and every example in README and docstrings"
	@echo "make test-long  the tests that take minutes"
	@echo "make bench      how fast it is on this machine, in about twelve minutes"
	@echo "make results    make what is missing of results/, which takes hours: make results DATA=folder"

install: .venv/installed

demo: .venv/installed
	$(BIN)/sparc run seq-digits --method chorus --fresh

test: .venv/installed
	$(BIN)/python -m pytest -n 2 -m "not long" --ignore tests/test_readme.py

test-long: .venv/installed
	$(BIN)/python -m pytest -n 2 -m long

# tests/test_readme.py is run here, with the other examples, and not by `make test` again.
check: .venv/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest --doctest-modules --doctest-glob="*.md" src README.md CONTRIBUTING.md tests/test_readme.py

bench: .venv/installed
	$(BIN)/python -m benchmarks

# DATA is where the data sets lie, if not where `sparc run` looks by itself. Runs that are there are not made again.
METHODS := sgd,joint,er,er:lr=0.03,der++,der++:lr=0.1,er-ace,er-ace:rivals=batch,lwf,oewc,oewc:lam=10,si,pnn,packnet,sparc:width=0.5:schedule=constant,isolation:width=0.5:schedule=constant,weight-alignment:width=0.5:schedule=constant
PARTS := chorus,chorus:inherit=nothing,chorus:weigh=false,chorus:statistics=0,chorus:patches=0,chorus:mirror=false,chorus:optimizer=adamw:lr=0.005
TASKWISE := sgd,sparc:schedule=constant,sparcl-ewc,alasso,ucb:draws=2:lr=0.1,gpm:lr=0.1,bmkp,wsn,packnet,cpg:pruning_step=0.5,pae:pruning_step=0.5,clnp,nispa
PROTOTYPES := sgd,joint,sparc:width=0.25:schedule=constant,sdc,pass,ssre,fetril,fecam,seed:depth=4,adagauss:batch_size=128,ranpac
REHEARSAL := sgd,er,der++,der++:lr=0.1,er-ace,gcr,lider-der++:lipschitz_weight=0:budget_weight=0,lider-der++,lider-er-ace,co2l:epochs=5:batch_size=64:optimizer=adam:momentum=0:lr=0.001:probe_lr=0.01,cls-er:alpha=0.975,ocdnet:alpha=0.975,tamil:alpha=0.975,trire:epochs=5:alpha=0.99,sparc:width=0.5:schedule=constant,chorus
FROM_DATA = $(if $(DATA),--data "$(DATA)")
results: .venv/installed
	$(BIN)/sparc run seq-cifar100-5 --seeds 3 --out results/sparc $(FROM_DATA)
	$(BIN)/sparc run seq-cifar100-5 --seed 0 --schedule constant --out results/sparc-constant $(FROM_DATA)
	$(BIN)/sparc run seq-cifar100-5 --method chorus --seeds 3 --out results/chorus $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --seeds 1 --methods chorus:epochs=2,chorus:epochs=5,chorus:epochs=10,chorus --out results/chorus-epochs $(FROM_DATA)
	$(BIN)/sparc run seq-cifar100-10 --method chorus --seeds 3 --out results/chorus-10 $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --seeds 1 --set epochs=2 width=0.25 --methods $(PARTS) --out results/chorus-parts $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --seeds 1 --set epochs=10 --methods chorus,chorus:inherit=nothing,chorus:inherit=alike,chorus:optimizer=adamw:lr=0.005,chorus:shared=0.75 --out results/chorus-parts-longer $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --set epochs=2 width=0.25 buffer_size=500 --methods $(METHODS) --out results/methods $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-20 --set epochs=2 batch_size=32 width=0.125 --methods $(TASKWISE) --out results/taskwise $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --set epochs=5 batch_size=64 width=0.125 --methods $(PROTOTYPES) --out results/prototypes $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --seeds 1 --set epochs=2 width=0.25 buffer_size=500 --methods $(REHEARSAL) --out results/rehearsal $(FROM_DATA)
	$(BIN)/sparc compare seq-cifar100-5 --seeds 1 --set epochs=10 width=0.125 buffer_size=500 --methods der++,cls-er,ocdnet,tamil,trire --out results/rehearsal-longer $(FROM_DATA)
	for runs in sparc sparc-constant chorus chorus-epochs chorus-10 chorus-parts chorus-parts-longer methods taskwise prototypes rehearsal rehearsal-longer; do $(BIN)/sparc report results/$$runs --out results/$$runs.html || exit 1; done

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
