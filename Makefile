# The two commands of a newcomer are `make demo` and `make test`; both install what is missing.
JOBS ?= $(shell nproc)
MAKEFLAGS += --no-print-directory

.PHONY: bench build configure demo test asan tsan format tidy setup clean

# With the Python package, once scripts/setup python has made its environment.
VENV := $(CURDIR)/build/venv
PYTHON_OPTIONS = $(if $(wildcard $(VENV)/ready),-DCONVGRAD_PYTHON=ON -DPython_EXECUTABLE=$(VENV)/bin/python \
  -DCONVGRAD_INSTALLED=$(INSTALLED))

configure: setup
	@mkdir -p build
	cmake --preset release $(PYTHON_OPTIONS) >build/configure.log || { cat build/configure.log; exit 1; }

build: configure
	cmake --build --preset release --parallel $(JOBS)

# Layers of known networks, each of the six operations, checked against the specification.
# The tests, which take longest to compile, are not needed.
demo: configure
	cmake --build --preset release --parallel $(JOBS) --target convgrad_command
	build/convgrad verify --batch=problems/demo.txt

# The tests of the Python package are left out where its environment cannot be made. They run on the build
# tree; make test INSTALLED=/.../bin/python runs them on the package that this interpreter has.
test: setup
	@scripts/setup python || echo "the Python package is not tested"
	@$(MAKE) build
	ctest --preset release --parallel $(JOBS)

# Layers of known networks, timed beside other libraries. Half an hour on two cores, the most of it in
# oneDNN's reference loops; make bench PEERS=blas takes five minutes.
PEERS ?= onednn,blas
bench:
	@scripts/setup bench
	@$(MAKE) build
	build/convgrad bench --peer $(PEERS) --batch=problems/layers.txt

asan tsan: setup
	cmake --preset $@
	cmake --build --preset $@ --parallel $(JOBS)
	ctest --preset $@ --parallel $(JOBS) --label-exclude long

format:
	@scripts/setup format
	scripts/format

tidy: build
	@scripts/setup tidy
	scripts/tidy

setup:
	@scripts/setup

clean:
	rm -rf build build-asan build-debug build-fuzz build-tsan
