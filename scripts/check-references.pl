#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Finds names in comments and prose that do not exist in the tree: links and their headings, paths,
# documents, targets of make, experiments, sub-commands and crates of Weir.
#
# A path of Weir begins with a folder of its root. `*`, NAME and … stand for any name.
# Exit: 0 all names exist, 1 some do not.
use strict;
use warnings;
use File::Basename qw(basename dirname);
use File::Spec::Functions qw(canonpath);

my (%files, %folders, %names);
for my $file (split /\0/, `git ls-files -z -c -o --exclude-standard`) {
    $files{$file} = 1;
    $names{ basename($file) } = 1;
    for (my $folder = dirname($file) ; $folder ne '.' ; $folder = dirname($folder)) {
        $folders{$folder} = 1;
    }
}
my $roots = join '|', map { quotemeta } grep { !m{/} } keys %folders;

sub text_of {
    my ($file) = @_;
    open(my $handle, '<', $file) or return '';
    local $/;
    return <$handle> // '';
}

my %targets = map { $_ => 1 } text_of('Makefile') =~ /^([a-z-]+):.*## /mg;
$targets{"test-$_"} = 1 for text_of('Makefile') =~ /\btest-([a-z]+)\b/g;
my %crates = map { $_ => 1 } map { text_of($_) =~ /^name = "([^"]+)"/m } grep { m{^(?:crates|papers)/(?:[^/]+/)+Cargo\.toml$} } keys %files;
my ($enum) = text_of('crates/cli/src/main.rs') =~ /^enum Command \{(.*?)^\}/ms;
my %commands = map { lc $_ => 1 } ($enum // '') =~ /^    ([A-Z]\w+)/mg;
die "crates/cli/src/main.rs has no sub-commands that this script can read\n" unless $commands{check};

# The headings of a page, in the form in which links name them.
my %headings;
sub has_heading {
    my ($page, $wanted) = @_;
    $headings{$page} //= { map { my $id = lc; $id =~ s/[^\w\- ]//g; $id =~ s/ /-/g; $id => 1 } text_of($page) =~ /^#+ +(.+)$/mg };
    return $headings{$page}{$wanted};
}

sub exists_path {
    my ($path) = @_;
    $path =~ s{/$}{};
    return 1 if $files{$path} || $folders{$path} || grep { $files{"$path$_"} } qw(.toml .rs .h .c .sv);
    return 0 unless $path =~ /\*|…|\b[A-Z]{2,}\b|[{<]/;
    (my $pattern = quotemeta $path) =~ s{\\\*|\\[{<].*?\\[}>]|(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])}{[^/]+}g;
    $pattern =~ s/(?:\\?[\x80-\xff])+/.+/g;
    return grep { /^$pattern(?:\.\w+)?$/ } keys %files, keys %folders;
}

my $found = 0;
sub lacks {
    my ($place, $what) = @_;
    print STDERR "$place: $what\n";
    $found = 1;
}

sub look {
    my ($file, $number, $text) = @_;
    my $place = "$file:$number";
    if ($file =~ /\.md$/) {
        while ($text =~ /\]\(([^)\s:]*?)(?:#([^)]*))?\)/g) {
            my ($to, $heading) = ($1, $2);
            my $path = $to eq '' ? $file : canonpath(dirname($file) . "/$to");
            1 while $path =~ s{[^/]+/\.\./}{};
            $path =~ s{^\./}{};
            if (!$files{$path} && !$folders{$path}) { lacks($place, "the link to $to leads nowhere") }
            elsif (defined $heading && !has_heading($path, $heading)) { lacks($place, "$path has no heading $heading") }
        }
        $text =~ s/\]\([^)]*\)/]/g;
    }
    while ($text =~ m{(?<![\w./\$~-])((?:$roots)/[\w.*/{},<>…-]*)}g) {
        (my $path = $1) =~ s/[.,…-]+$//;
        my @each = $path =~ /^(.*)\{([^}]*,[^}]*)\}(.*)$/ ? do { my ($b, $l, $a) = ($1, $2, $3); map { "$b$_$a" } split /, ?/, $l } : ($path);
        for (@each) { lacks($place, "there is no $_") unless exists_path($_) }
    }
    while ($text =~ /(?<![\w.\/-])([A-Z][A-Z_-]+\.md)\b/g) { lacks($place, "there is no $1") unless $names{$1} }
    while ($text =~ /`make ([a-z][a-z-]*)/g) { lacks($place, "make has no $1") unless $targets{$1} }
    while ($text =~ /`weir ([a-z]+)/g) { lacks($place, "weir has no $1") unless $commands{$1} }
    while ($text =~ /weir reproduce (\w+\/[\w-]+)/g) { lacks($place, "there is no experiment $1") unless $files{"papers/experiments/$1.toml"} }
    while ($text =~ /(?<![\w-])-p (weir-[a-z-]+)/g) { lacks($place, "there is no crate $1") unless $crates{$1} }
}

my %marks = (rs => '//[/!]?', sv => '//', c => '//|/\*+|\*(?=\s)', h => '//|/\*+|\*(?=\s)', S => '//|/\*+|\*(?=\s)',
    toml => '#', py => '#', pl => '#', sh => '#', '' => '#');
for my $file (sort keys %files) {
    next if $file =~ m{/generated/|^CHANGELOG\.md$|^docs/decisions/|^LICENSE};
    my ($kind) = basename($file) =~ /\.([^.]+)$/;
    $kind //= '';
    next unless $kind eq 'md' || exists $marks{$kind};
    my $number = 0;
    for my $line (split /\n/, text_of($file)) {
        $number++;
        if ($kind eq 'md') { look($file, $number, $line) }
        elsif ($line =~ /^\s*(?:$marks{$kind})(.*)/) { look($file, $number, $1) }
    }
}
exit $found;
